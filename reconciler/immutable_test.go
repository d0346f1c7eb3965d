package reconciler

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/reconciler/ownership"
)

// immutables are objects, each with a change that the API server refuses and the field that it is about.
var immutables = map[string]struct{ object, change, field string }{
	"Deployment":    {web, `web: {spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}}}}`, "spec.selector.matchLabels.app"},
	"StatefulSet":   {`o: {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: o}, spec: {serviceName: a, selector: {matchLabels: {app: o}}, template: {metadata: {labels: {app: o}}, spec: {containers: [{name: o, image: o}]}}}}`, `o: {spec: {serviceName: b}}`, "spec.serviceName"},
	"Job":           {`o: {apiVersion: batch/v1, kind: Job, metadata: {name: o}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: o, image: "o:1"}]}}}}`, `o: {spec: {template: {spec: {containers: [{name: o, image: "o:2"}]}}}}`, "spec.template.spec.containers[o].image"},
	"Service":       {`o: {apiVersion: v1, kind: Service, metadata: {name: o}, spec: {ports: [{port: 80}]}}`, `o: {spec: {clusterIP: 10.0.0.77}}`, "spec.clusterIP"},
	"PVC":           {`o: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: o}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, `o: {spec: {accessModes: [ReadWriteMany]}}`, "spec.accessModes[0]"},
	"RoleBinding":   {`o: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: o}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`, `o: {roleRef: {name: b}}`, "roleRef.name"},
	"ConfigMap":     {`o: {apiVersion: v1, kind: ConfigMap, metadata: {name: o}, immutable: true, data: {k: v}}`, `o: {data: {k: w}}`, "data.k"},
	"Secret type":   {`o: {apiVersion: v1, kind: Secret, metadata: {name: o}, type: a}`, `o: {type: b}`, "type"},
	"Pod":           {`o: {apiVersion: v1, kind: Pod, metadata: {name: o}, spec: {containers: [{name: o, image: o, command: [a]}]}}`, `o: {spec: {containers: [{name: o, image: o, command: [b]}]}}`, "spec.containers[o].command[0]"},
	"PriorityClass": {`o: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAMESPACE}, value: 1}`, `o: {value: 2}`, "value"},
	"StorageClass":  {`o: {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE}, provisioner: example.com/a}`, `o: {provisioner: example.com/b}`, "provisioner"},
	"parameters":    {`o: {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAMESPACE}, provisioner: example.com/a, parameters: {k: v}}`, `o: {parameters: {k: w}}`, "parameters.k"},
	"RuntimeClass":  {`o: {apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NAMESPACE}, handler: a}`, `o: {handler: b}`, "handler"},
}

// TestWhatCannotChangeIsNamed: in the API server's words, of which each kind has its own, and by the field.
func TestWhatCannotChangeIsNamed(t *testing.T) {
	w := newBundles(t, anywhere)
	for name, c := range immutables {
		t.Run(name, func(t *testing.T) {
			w := w.another(t)
			w.restart(api.Admin())
			cr := w.createBundle("one", c.object)
			w.mustReconcile(cr)
			w.change(cr, c.change)
			for range 2 {
				w.mustFail(cr)
			}
			want := "cannot be changed in " + c.field
			if got := w.condition(cr, conditionApplied); !strings.HasPrefix(got, "False Immutable ") || !strings.Contains(got, want) || !strings.Contains(got, ownership.RecreateAnnotation+"=true") {
				t.Errorf("want %q and what to do, got %s", want, got)
			}
		})
	}
}

// TestASecretStaysSecret: neither its old value nor its new one is told when it cannot be changed.
func TestASecretStaysSecret(t *testing.T) {
	w := newBundles(t)
	cr := w.createBundle("one", `o: {apiVersion: v1, kind: Secret, metadata: {name: o}, immutable: true, data: {password: b2xk}}`)
	w.mustReconcile(cr)
	w.change(cr, `o: {data: {password: bmV3}}`)
	w.mustFail(cr)
	w.get(cr, "one")
	delete(cr.Object, "spec")
	unstructured.RemoveNestedField(cr.Object, "metadata", "managedFields")
	told := fmt.Sprint(cr.Object, w.takeEvents())
	if !strings.Contains(told, "cannot be changed in data.password") || strings.Contains(told, "b2xk") || strings.Contains(told, "bmV3") {
		t.Errorf("got %s", told)
	}
}

// TestRecreation: what cannot be changed is deleted and made anew where that is allowed.
func TestRecreation(t *testing.T) {
	const object = `o: {apiVersion: v1, kind: ConfigMap, metadata: {name: o}, immutable: true, data: {k: v}}`
	const differs = "ConfigMap o: cannot be changed in data.k; undo the change, or allow the object to be deleted and created anew with the annotation " +
		"memcached-operator.example.com/recreate=true; ConfigMap \"o\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
	for name, c := range map[string]struct {
		policy, annotation string
		isAllowed          bool
	}{
		"not by default":   {"", "", false},
		"policy":           {`recreate: ["ConfigMap"]`, "", true},
		"policy of others": {`recreate: ["Job.batch", "ConfigMap.example.com"]`, "", false},
		"annotation":       {"", "true", true},
		"other annotation": {"", "yes", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBundles(t, c.policy)
			cr := w.createBundle("one", object)
			w.mustReconcile(cr)
			before := w.configMap("o")
			if c.annotation != "" {
				w.patch(before, `{"metadata": {"annotations": {"`+ownership.RecreateAnnotation+`": "`+c.annotation+`"}}}`)
			}
			w.hold(before)
			w.takeEvents()
			w.change(cr, `o: {data: {k: w}}`)
			w.mustFail(cr)
			if !c.isAllowed {
				w.wantCondition(cr, conditionApplied, "False Immutable "+differs)
				w.wantEvents("Warning Immutable " + differs)
				if w.configMap("o").DeletionTimestamp != nil {
					t.Error("it was deleted")
				}
				return
			}
			w.wantCondition(cr, conditionApplied, "False Terminating ConfigMap o: is being deleted; it will be applied again once it is gone")
			w.wantEvents("Normal Applied deleted, to create anew, ConfigMap o")
			w.wantInventory(cr, "ConfigMap o")
			w.mustFail(cr)
			w.wantEvents()
			w.release(before)
			w.mustReconcile(cr)
			w.wantEvents("Normal Applied created ConfigMap o")
			w.wantConflicts(map[string]int{})
			if after := w.configMap("o"); after.UID == before.UID || after.Data["k"] != "w" {
				t.Errorf("it is %v", after)
			}
		})
	}
}

// TestWhatIsNotYetOursIsNotRecreated: the policies let us adopt an object, and recreate our own. Both together do not let us delete
// what another made.
func TestWhatIsNotYetOursIsNotRecreated(t *testing.T) {
	w := newBundles(t, `adopt: "Unowned", recreate: ["ConfigMap"]`)
	theirs := w.createYAML(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {k: theirs}}`)
	cr := w.createBundle("one", oneConfigMap)
	w.mustFail(cr)
	if got := w.condition(cr, conditionApplied); !strings.HasPrefix(got, "False Immutable ConfigMap a: cannot be changed in data.k") {
		t.Errorf("Applied is %s", got)
	}
	if w.configMap("a").UID != theirs.GetUID() {
		t.Error("another's object was deleted")
	}
	// Its owner may say so.
	w.patch(theirs, `{"metadata": {"annotations": {"`+ownership.RecreateAnnotation+`": "true"}}}`)
	w.mustFail(cr)
	w.mustReconcile(cr)
	if w.configMap("a").UID == theirs.GetUID() {
		t.Error("the object is still there")
	}
}
