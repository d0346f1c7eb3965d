package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func (e *test) applyWebServer(name, spec string) {
	e.t.Helper()
	e.Expect(e.applyObject("demo.k8s.io/v1alpha1", "WebServer", name, "spec: "+spec)).To(Succeed())
}

// TestWebServer is the walk that tutorials take.
func TestWebServer(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	const object = "webserver/example-webserver"
	serves := func(count int) {
		t.Helper()
		e.eventually(object, "{.status.count}/{.status.replicas}/{.status.readyReplicas}", fmt.Sprintf("%d/%d/%d", count, count, count))
		e.eventuallyCondition(object, "Ready", HavePrefix("True"))
		e.eventually("deployment/example-webserver", "{.spec.replicas}", count)
	}
	e.applyWebServer("example-webserver", "{replicas: 5}")
	serves(5)
	e.Expect(e.kubectl("get", "pods", "-o", "name", "-l", e.get(object, "{.status.selector}"))).To(HaveLen(5*len("pod/example-webserver-0123456789-01234") + 4))
	e.kubectl("scale", object, "--replicas=2")
	serves(2)
	e.kubectl("delete", object)
	e.eventuallyGone("deployments,services,replicasets,pods")
}

// httpRoutes is as much of the Gateway API's definition as an API server needs.
const httpRoutes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: httproutes.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: gateway.networking.k8s.io
  names: {kind: HTTPRoute, listKind: HTTPRouteList, plural: httproutes, singular: httproute}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestAnOptionalKindIsInstalledLater: a cluster without the Gateway API goes without routes until it is installed, and the operator
// need not be told.
func TestAnOptionalKindIsInstalledLater(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	const object = "webserver/shop"
	e.applyWebServer("shop", "{replicas: 1, ingress: {host: www.example.com}, route: {parentRefs: [{name: public}], hostnames: [www.example.com]}}")
	e.eventuallyCondition(object, "Ready", HavePrefix("True"))
	const leftOut = "True ObjectsApplied HTTPRoute shop (gateway.networking.k8s.io/v1) is left out, as the cluster does not know its kind"
	e.Expect(e.condition(object, "Applied")).To(Equal(leftOut))
	e.Expect(e.get("ingress/shop", "{.spec.rules[0].host}")).To(Equal("www.example.com"))

	e.kubectl("scale", object, "--replicas=2")
	e.eventually(object, "{.status.readyReplicas}", 2)
	e.Expect(e.condition(object, "Applied")).To(Equal(leftOut))

	file := filepath.Join(t.TempDir(), "httproutes.yaml")
	e.Expect(os.WriteFile(file, []byte(httpRoutes), 0o600)).To(Succeed())
	e.kubectl("create", "-f", file)
	// The first custom resource goes before the definition, whose end must not be the operator's trouble in other tests.
	t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "delete", "--wait=false", "-f", file) })
	e.eventually("httproute/shop", "{.spec.rules[0].backendRefs[0].name}", "shop")
	e.eventuallyCondition(object, "Applied", Equal("True ObjectsApplied"))
	e.eventuallyCondition(object, "Ready", HavePrefix("True"))

	e.kubectl("delete", "httproute", "shop") // drift of the new kind is mended, too
	e.eventually("httproute/shop", "{.spec.hostnames[0]}", "www.example.com")

	// It goes, and comes again.
	e.kubectl("delete", "-f", file)
	e.eventuallyCondition(object, "Applied", Equal(leftOut))
	e.kubectl("create", "-f", file)
	e.eventually("httproute/shop", "{.spec.hostnames[0]}", "www.example.com")
	e.eventuallyCondition(object, "Applied", Equal("True ObjectsApplied"))

	e.applyWebServer("shop", "{replicas: 2}")
	e.eventuallyGone("httproutes,ingresses")
	e.kubectl("delete", object)
}
