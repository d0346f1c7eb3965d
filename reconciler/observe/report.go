package observe

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/memcached-operator/reconciler/kind"
)

// Report returns the kind's part of the status of the custom resource namespace/name: JSON's types, whole numbers as int64.
// An error is a fault of the kind.
func Report(k *kind.Kind, namespace, name string, observed Observation) (map[string]any, error) {
	observation, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&observed)
	if err != nil {
		return nil, fmt.Errorf("converting the observation: %w", err)
	}
	metadata := map[string]any{"namespace": namespace, "name": name}
	return kind.Evaluate("the report of "+k.Names.Kind, func() (map[string]any, error) { return evaluate(k, metadata, observation) })
}

func evaluate(k *kind.Kind, metadata, observation map[string]any) (map[string]any, error) {
	// A context of its own for each input: what is encoded into a shared one is never freed.
	ctx := cuecontext.New()
	result := k.Report.
		FillPath(cue.MakePath(cue.Def("metadata")), ctx.Encode(metadata)).
		FillPath(cue.MakePath(cue.Def("observed")), ctx.Encode(observation))
	if err := result.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return nil, fmt.Errorf("computing the report of %s: %s", k.Names.Kind, cueerrors.Details(err, nil))
	}
	var report map[string]any
	if err := result.Decode(&report); err != nil {
		return nil, fmt.Errorf("decoding the report of %s: %w", k.Names.Kind, err)
	}
	return report, nil
}
