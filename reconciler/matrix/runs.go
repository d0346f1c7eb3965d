package matrix

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/example/memcached-operator/reconciler/kind"
)

// atOnce is how many renderings run beside each other: enough for those that share something to meet.
const atOnce = 8

// runs renders each sample so many times more, and compares. Go walks a map in another order each time.
func runs(k *kind.Kind, times int) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(k.Samples)) {
		if err := sameEachTime(k, name, times); err != nil {
			problems = append(problems, fmt.Sprintf("schemas/%s: sample %s: %v", k.Folder, name, err))
		}
	}
	return problems
}

func sameEachTime(k *kind.Kind, name string, times int) error {
	first, err := manifest(k, name)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for range times {
		group.Go(func() error {
			text, err := manifest(k, name)
			if err == nil && !bytes.Equal(text, first) {
				err = fmt.Errorf("charts/%s renders it differently from time to time\n%s", k.Chart.Name(), difference("first", first, text))
			}
			return err
		})
	}
	return group.Wait()
}
