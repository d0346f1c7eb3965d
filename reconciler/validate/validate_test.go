package validate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/validate"
)

func memcached(t testing.TB) *kind.Kind {
	t.Helper()
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if k.Names.Kind == "Memcached" {
			return k
		}
	}
	t.Fatal("no kind Memcached")
	return nil
}

// spec reads JSON as the API server's clients do: whole numbers become int64.
func spec(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := utiljson.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestValidSpecs(t *testing.T) {
	k := memcached(t)
	for name, c := range map[string]struct {
		spec   string
		reason string
		want   string
	}{
		"empty": {
			reason: "everything has a default",
			spec:   `{}`,
			want: `{"size": 1, "image": {"reference": "docker.io/library/memcached:1.6.45", "pullPolicy": "IfNotPresent", "pullSecrets": []},
				"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}, "args": ["-m", "200"]}`,
		},
		"nulls": {
			reason: "kubectl apply sends null for a field that a user cleared: it counts as absent",
			spec:   `{"size": null, "image": null, "resources": {"limits": {"memory": null}}}`,
			want: `{"size": 1, "image": {"reference": "docker.io/library/memcached:1.6.45", "pullPolicy": "IfNotPresent", "pullSecrets": []},
				"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}, "args": ["-m", "200"]}`,
		},
		"a whole number": {
			reason: "the API server stores 1.0 as 1",
			spec:   `{"size": 1.0, "resources": {"limits": {"memory": 2.68435456e8}}}`,
			want: `{"size": 1, "image": {"reference": "docker.io/library/memcached:1.6.45", "pullPolicy": "IfNotPresent", "pullSecrets": []},
				"resources": {"requests": {"cpu": "100m", "memory": 268435456}, "limits": {"memory": 268435456}}, "args": ["-m", "200"]}`,
		},
		"all set": {
			reason: "a digest alone names the image; the cache follows the memory limit",
			spec: `{"size": 1000, "image": {"repository": "registry.example.com:5000/mirror/memcached", "digest": "sha256:` + strings.Repeat("0a", 32) + `",
				"pullPolicy": "Always", "pullSecrets": [{"name": "registry"}]},
				"resources": {"requests": {"cpu": 1, "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}}`,
			want: `{"size": 1000, "image": {"reference": "registry.example.com:5000/mirror/memcached@sha256:` + strings.Repeat("0a", 32) + `",
				"pullPolicy": "Always", "pullSecrets": [{"name": "registry"}]},
				"resources": {"requests": {"cpu": 1, "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "args": ["-m", "819"]}`,
		},
		"smallest cache": {
			reason: "64Mi of cache need a limit of 120Mi",
			spec:   `{"size": 0, "resources": {"limits": {"memory": 125829120}}}`,
			want: `{"size": 0, "image": {"reference": "docker.io/library/memcached:1.6.45", "pullPolicy": "IfNotPresent", "pullSecrets": []},
				"resources": {"requests": {"cpu": "100m", "memory": 125829120}, "limits": {"memory": 125829120}}, "args": ["-m", "64"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := validate.Spec(k, "cache", spec(t, c.spec))
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(spec(t, c.want), map[string]any(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestInvalidSpecsNameFieldValueAndBound(t *testing.T) {
	k := memcached(t)
	for text, want := range map[string]string{
		`{"size": -1}`:                                   `spec.size: invalid value -1 (out of bound >=0)`,
		`{"size": 1001}`:                                 `spec.size: invalid value 1001 (out of bound <=1000)`,
		`{"size": "three"}`:                              `spec.size: invalid value "three": must be of type int`,
		`{"size": 2.5}`:                                  `spec.size: invalid value 2.5: must be of type int`,
		`{"siez": null}`:                                 `spec.siez: field not allowed`,
		`{"image": {"x": {"y": null}}}`:                  `spec.image.x: field not allowed`,
		`{"image": {"pullSecrets": [null]}}`:             `spec.image.pullSecrets[0]: invalid value null: must be of type struct`,
		`{"siez": 3}`:                                    `spec.siez: field not allowed`,
		`{"image": {"pullPolicy": "Sometimes"}}`:         `spec.image.pullPolicy: invalid value "Sometimes": must be one of "Always", "IfNotPresent", "Never"`,
		`{"image": {"repository": "not an image"}}`:      `spec.image.repository: invalid value "not an image": must be an image name without tag and digest, such as docker.io/library/memcached`,
		`{"image": {"tag": "{{ .Values }}"}}`:            `spec.image.tag: invalid value "{{ .Values }}": must be an image tag, such as 1.6.45`,
		`{"image": {"digest": "sha256:12"}}`:             `spec.image.digest: invalid value "sha256:12": must be an image digest: sha256: and 64 hexadecimal digits`,
		`{"image": {"pullSecrets": [{"name": 3}]}}`:      `spec.image.pullSecrets[0].name: invalid value 3: must be the name of an object: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends`,
		`{"image": {"pullSecrets": [{}]}}`:               `spec.image.pullSecrets[0].name: field is required but not present`,
		`{"image": "memcached:1.6"}`:                     `spec.image: invalid value "memcached:1.6": must be of type struct`,
		`{"resources": {"limits": {"memory": "lots"}}}`:  `spec.resources.limits.memory: invalid value "lots": must be an amount of memory in whole bytes, Ki, Mi, Gi or Ti, such as 256Mi or 1Gi`,
		`{"resources": {"limits": {"memory": "100Mi"}}}`: `spec.resources.limits: memory must be at least 120Mi: memcached needs 64Mi of cache and 56Mi beside it`,
		`{"resources": {"limits": {"cpu": "a lot"}}}`:    `spec.resources.limits.cpu: invalid value "a lot": must be an amount of CPU, such as 250m, 0.5 or 2`,
		`{"size": -1, "resources": {"limits": {"cpu": ""}}}`: `spec.resources.limits.cpu: invalid value "": must be an amount of CPU, such as 250m, 0.5 or 2; ` +
			`spec.size: invalid value -1 (out of bound >=0)`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := validate.Spec(k, "cache", spec(t, text))
			if !validate.IsInvalid(err) {
				t.Fatalf("want an InvalidError, got %v", err)
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesThatWouldMakeInvalidObjectsAreRefused(t *testing.T) {
	k := memcached(t)
	for _, name := range []string{"1cache", "a.b", "a-", strings.Repeat("a", 53)} {
		_, err := validate.Spec(k, name, nil)
		var invalid *validate.InvalidError
		if !errors.As(err, &invalid) || invalid.Fields[0].Path != "metadata.name" {
			t.Errorf("name %q: want an InvalidError at metadata.name, got %v", name, err)
		}
	}
	if _, err := validate.Spec(k, strings.Repeat("a", 52), nil); err != nil {
		t.Errorf("a name of 52 characters: %v", err)
	}
}

func TestSpecIsNotChanged(t *testing.T) {
	in := spec(t, `{"size": 3, "image": {"tag": null}}`)
	before, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := validate.Spec(memcached(t), "cache", in); err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the input changed (-before +after):\n%s", diff)
	}
}

func BenchmarkSpec(b *testing.B) {
	k, in := memcached(b), spec(b, `{"size": 3}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := validate.Spec(k, "cache", in); err != nil {
			b.Fatal(err)
		}
	}
}
