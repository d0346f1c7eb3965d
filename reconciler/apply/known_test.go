package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAFingerprintIsOfWhatAnApplyCanSet(t *testing.T) {
	yes := true
	original := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "x", Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
			OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: &yes}},
		}}
	}
	want := fingerprint(original())
	for name, c := range map[string]struct {
		change func(o *corev1.ConfigMap)
		isNews bool
	}{
		"nothing":              {func(*corev1.ConfigMap) {}, false},
		"label":                {func(o *corev1.ConfigMap) { o.Labels["a"] = "2" }, true},
		"label more":           {func(o *corev1.ConfigMap) { o.Labels["d"] = "" }, true},
		"label less":           {func(o *corev1.ConfigMap) { delete(o.Labels, "a") }, true},
		"label moved":          {func(o *corev1.ConfigMap) { delete(o.Labels, "b"); o.Annotations["b"] = "2" }, true},
		"key and value shift":  {func(o *corev1.ConfigMap) { o.Labels = map[string]string{"a1": "", "b": "2"} }, true},
		"annotation":           {func(o *corev1.ConfigMap) { o.Annotations["c"] = "4" }, true},
		"owner":                {func(o *corev1.ConfigMap) { o.OwnerReferences[0].UID = "2" }, true},
		"owner gone":           {func(o *corev1.ConfigMap) { o.OwnerReferences = nil }, true},
		"no controller":        {func(o *corev1.ConfigMap) { o.OwnerReferences[0].Controller = nil }, true},
		"no longer blocks":     {func(o *corev1.ConfigMap) { o.OwnerReferences[0].BlockOwnerDeletion = &yes }, true},
		"a rollout's revision": {func(o *corev1.ConfigMap) { o.Annotations[revisionAnnotation] = "7" }, false},
		"resource version":     {func(o *corev1.ConfigMap) { o.ResourceVersion = "7" }, false},
		"managed fields":       {func(o *corev1.ConfigMap) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false},
	} {
		changed := original()
		c.change(changed)
		if got := fingerprint(changed) != want; got != c.isNews {
			t.Errorf("%s: is news %t", name, got)
		}
	}
}

func TestNews(t *testing.T) {
	object := func(version string, generation int64, label string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Generation: generation, Labels: map[string]string{"a": label}}}
	}
	ending := object("11", 1, "")
	ending.DeletionTimestamp = &metav1.Time{}
	known := knowledge{resourceVersion: "10", generation: 1, metadata: fingerprint(object("10", 1, ""))}
	unversioned := known
	unversioned.generation = 0
	for name, c := range map[string]struct {
		known knowledge
		live  *corev1.ConfigMap
		want  news
	}{
		"as it was":                  {known, object("10", 1, ""), nothing},
		"an older one":               {known, object("9", 1, ""), outdated},
		"another status":             {known, object("11", 1, ""), nothing},
		"another spec":               {known, object("11", 2, ""), changed},
		"another label":              {known, object("11", 1, "x"), changed},
		"on its way out":             {known, ending, changed},
		"no generation to go by":     {unversioned, object("11", 0, ""), changed},
		"a version that is no count": {known, object("x", 2, ""), changed},
		"never seen":                 {knowledge{}, object("10", 1, ""), changed},
	} {
		if got := c.known.isNews(c.live); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestAQuarrelPauses: an object is mended ten times within five minutes, and tried again when the first of them is past.
func TestAQuarrelPauses(t *testing.T) {
	w, drift := &wish{digest: "d"}, []string{"spec.replicas: 9", "data.password: secret"}
	known := knowledge{digest: "d"}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for n := range maxMends {
		if err := known.tooOften(at(n), w, drift); err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		known.mended(at(n), w, drift)
	}
	const want = "was mended 10 times within 5m0s and is changed back each time; it is left alone for that long: "
	if err := known.tooOften(at(10), w, drift); err == nil || err.Error() != want+"spec.replicas, data.password" {
		t.Errorf("got %v", err)
	}
	known.forced = []Conflict{{Field: "spec.replicas", Manager: "rival"}}
	if err := known.tooOften(at(300), w, drift); err == nil || err.Error() != want+"spec.replicas (rival)" {
		t.Errorf("got %v", err)
	}
	if err := known.tooOften(at(300), &wish{digest: "another"}, drift); err != nil {
		t.Errorf("what is wanted has changed: %v", err)
	}

	if err := known.tooOften(at(301), w, drift); err != nil {
		t.Errorf("after five minutes: %v", err)
	}
	known.mended(at(301), w, drift)
	if err := known.tooOften(at(301), w, drift); err == nil {
		t.Error("the other nine are still there")
	}
	if len(known.mends) != maxMends {
		t.Errorf("remembers %d", len(known.mends))
	}
	known.mended(at(302), &wish{digest: "another"}, drift)
	if len(known.mends) != 0 {
		t.Error("a new wish is no mend")
	}
}
