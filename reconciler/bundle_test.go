package reconciler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Bundle is the kind of these tests, in testdata/bundle. Its spec is what its chart renders, so that a test shows all there is:
//
//	spec:
//	  objects:
//	    a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
var bundle = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Bundle"}

// anywhere is the policy that allows objects in other namespaces and without one.
const anywhere = `placement: "Anywhere"`

// newBundles returns a world that serves Bundles with these policies, in CUE.
func newBundles(t *testing.T, policies ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.library = w.openLibrary(bundleFolder(t, policies...))
	w.restart(api.Admin())
	return w
}

// bundleFolder returns a folder with the kind Bundle under these policies.
func bundleFolder(t *testing.T, policies ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/bundle")); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "schemas/bundle/kind.cue", `chart:  "bundle"`, fmt.Sprintf("chart:  \"bundle\"\n\tpolicies: {%s}", strings.Join(policies, "\n")))
	return dir
}

// edit replaces a text in a file of a kind.
func edit(t *testing.T, dir, name, from, to string) {
	t.Helper()
	name = filepath.Join(dir, name)
	data, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(data), from) {
		t.Fatalf("%s does not hold %q: %v", name, from, err)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(data), from, to)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// parse reads YAML.
func (w *world) parse(text string) map[string]any {
	w.t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// createBundle creates a Bundle of objects, which are in YAML. NAMESPACE stands for the test's own.
func (w *world) createBundle(name, objects string) *unstructured.Unstructured {
	w.t.Helper()
	cr := prototype(bundle)
	cr.SetNamespace(w.namespace)
	cr.SetName(name)
	cr.Object["spec"] = map[string]any{"objects": w.parse(strings.ReplaceAll(objects, "NAMESPACE", w.namespace))}
	w.create(cr)
	return cr
}

// change merges objects, which are in YAML, into those of a Bundle.
func (w *world) change(cr *unstructured.Unstructured, objects string) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(objects, "NAMESPACE", w.namespace)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.patch(cr, fmt.Sprintf(`{"spec": {"objects": %s}}`, data))
}

// mustFail reconciles and wants an error that is retried.
func (w *world) mustFail(cr *unstructured.Unstructured) {
	w.t.Helper()
	if err := w.reconcile(cr); err == nil || isTerminal(err) {
		w.t.Errorf("want an error that is retried, got %v", err)
	}
}

// createYAML creates an object as somebody else would.
func (w *world) createYAML(object string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: w.parse(object)}
	if u.GetNamespace() == "" {
		u.SetNamespace(w.namespace)
	}
	if err := w.client.Create(w.t.Context(), u, client.FieldOwner("somebody")); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// configMap returns the ConfigMap of that name.
func (w *world) configMap(name string) *corev1.ConfigMap {
	w.t.Helper()
	c := &corev1.ConfigMap{}
	w.get(c, name)
	return c
}

// wantConfigMaps compares the names of the ConfigMaps in the test's namespace.
func (w *world) wantConfigMaps(want ...string) {
	w.t.Helper()
	var list corev1.ConfigMapList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for i := range list.Items {
		got = append(got, list.Items[i].Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
}

// wantInventory compares the names of the objects in a custom resource's inventory.
func (w *world) wantInventory(cr *unstructured.Unstructured, want ...string) {
	w.t.Helper()
	w.get(cr, cr.GetName())
	var got []string
	for _, e := range ownFields(cr).Inventory {
		got = append(got, e.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

// remove deletes an object as a user would.
func (w *world) remove(o client.Object, options ...client.DeleteOption) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), o, options...); err != nil {
		w.t.Fatal(err)
	}
}

// isGone tells whether the API server has an object no more.
func (w *world) isGone(o client.Object) bool {
	w.t.Helper()
	u := prototype(o.GetObjectKind().GroupVersionKind())
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), u)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

// hold sets a finalizer that keeps an object from going; release removes it.
func (w *world) hold(o client.Object) {
	w.t.Helper()
	w.patch(o, `{"metadata": {"finalizers": ["example.com/hold"]}}`)
}

func (w *world) release(o client.Object) {
	w.t.Helper()
	w.patch(o, `{"metadata": {"finalizers": null}}`)
}

// patchAs merges a patch, in JSON, into an object under another field manager's name.
func (w *world) patchAs(manager string, o client.Object, patch string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), o, mergePatch(patch), client.FieldOwner(manager)); err != nil {
		w.t.Fatal(err)
	}
}

// ownersOf returns the UIDs in an object's owner references.
func ownersOf(o metav1.Object) (uids []types.UID) {
	for _, r := range o.GetOwnerReferences() {
		uids = append(uids, r.UID)
	}
	return uids
}

var clusterRoles = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")

// clusterRole returns the ClusterRole of that name.
func (w *world) clusterRole(name string) *rbacv1.ClusterRole {
	w.t.Helper()
	r := &rbacv1.ClusterRole{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
