package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/reconciler/schema"
)

// TestBreaks shows which changes of a field's schema custom resources that are stored would not survive.
func TestBreaks(t *testing.T) {
	for _, c := range []struct {
		before, now string
		want        []string
	}{
		{before: `f: *1 | int`, now: `f: *2 | int, g?: string`},
		{before: `f?: int & >=1 & <=5`, now: `f?: int & >=0 & <=6`},
		{before: `f?: int & >=0 & <=6`, now: `f?: int & >=1 & <=5`, want: []string{"spec.f: the minimum is 1 now", "spec.f: the maximum is 5 now"}},
		{before: `f?: int`, now: `f?: int & >0`, want: []string{"spec.f: the minimum is 0 now"}},
		{before: `f?: number & >=0`, now: `f?: number & >0`, want: []string{"spec.f: the minimum is 0 now"}},
		{before: `f?: string`, now: `g?: string`, want: []string{"spec.f: is gone: stored values would be dropped"}},
		{before: `f?: string`, now: `...`},
		{before: `f?: {a?: int}`, now: `f?: {b?: int}`, want: []string{"spec.f.a: is gone: stored values would be dropped"}},
		{before: `f?: int`, now: `f?: string`, want: []string{"spec.f: was integer, is string"}},
		{before: `f?: int`, now: `f?: number`},
		{before: `f?: int`, now: `f?: int | string`},
		{before: `f?: int | string`, now: `f?: int`, want: []string{"spec.f: was integer or string, is integer"}},
		{before: `f?: int`, now: `f!: int`, want: []string{"spec: f is required now"}},
		{before: `f?: int`, now: `f: *1 | int`},
		{before: `f?: "A" | "B"`, now: `f?: "A" | "B" | "C"`},
		{before: `f?: "A" | "B"`, now: `f?: "A" | "C"`, want: []string{`spec.f: may no longer be "B"`}},
		{before: `f?: string`, now: `f?: "A" | "C"`, want: []string{"spec.f: is an enumeration now"}},
		{before: `f?: null | string`, now: `f?: string`, want: []string{"spec.f: may no longer be null"}},
		{before: `f?: string`, now: `f?: =~"^a"`, want: []string{"spec.f: must match ^a now"}},
		{before: `f?: strings.MaxRunes(9)`, now: `f?: strings.MaxRunes(8)`, want: []string{"spec.f: the greatest length is 8 now"}},
		{before: "f?: list.MaxItems(9) & [...#E]\n#E: a?: int", now: "f?: list.MaxItems(8) & [...#E]\n#E: a?: int & <3",
			want: []string{"spec.f: the greatest number of entries is 8 now", "spec.f[].a: the maximum is 3 now"}},
		{before: `f?: list.MaxItems(9) & [...int]`, now: `f?: list.UniqueItems & list.MaxItems(9) & [...int]`, want: []string{"spec.f: may no longer hold the same entry twice"}},
		{before: `f?: struct.MaxFields(9) & {[string]: int}`, now: `f?: struct.MaxFields(9) & {[string]: string}`, want: []string{"spec.f.*: was integer, is string"}},
		{before: `a: *1 | int`, now: `a: *1 | int, _r: kind.#Rule & {holds: a < 3, message: "a must be below 3", cel: "self.a < 3"}`, want: []string{"spec: has a new rule: a must be below 3"}},
	} {
		before, _, err := read(t, c.before)
		if err != nil {
			t.Fatal(err)
		}
		now, _, err := read(t, c.now)
		if err != nil {
			t.Fatal(err)
		}
		got := schema.Breaks("spec", new(before.Properties["spec"]), new(now.Properties["spec"]))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s → %s (-want +got):\n%s", c.before, c.now, diff)
		}
	}
}
