package main

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestThreeWay merges as kubectl apply does: what was applied and is no more goes, what others wrote stays.
func TestThreeWay(t *testing.T) {
	const last = `{"metadata": {"annotations": {}, "name": "a"}, "spec": {"gone": 1, "same": 2, "changed": 3}}`
	live := read(t, `{apiVersion: v1, kind: X, metadata: {name: a, annotations: {mine: stays}}, spec: {gone: 1, same: 2, changed: 3, others: 4}}`)
	live.SetAnnotations(map[string]string{"mine": "stays", "kubectl.kubernetes.io/last-applied-configuration": last})
	wanted := read(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {same: 2, changed: 5, new: 6}}`)
	got, err := threeWay(last, wanted, live)
	if want := `{"spec":{"changed":5,"gone":null,"new":6}}`; err != nil || string(got) != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}
	if len(wanted.GetAnnotations()) > 0 {
		t.Error("the custom resource was changed")
	}
}

func TestApplierOf(t *testing.T) {
	for want, object := range map[string]string{
		"kubectl": `{metadata: {managedFields: [{manager: kubectl-client-side-apply, operation: Update}, {manager: memcached-operator, operation: Apply, subresource: status}, {manager: memcached-operator, operation: Apply}]}}`,
		"flux":    `{metadata: {managedFields: [{manager: scaler, operation: Apply, subresource: scale}, {manager: flux, operation: Apply}]}}`,
	} {
		if got := applierOf(read(t, object)); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	if got := applierOf(nil); got != "kubectl" {
		t.Errorf("of nothing: got %s", got)
	}
}

// TestErrorsAboutSecretsAreDiscreet: an API server repeats what it refuses.
func TestErrorsAboutSecretsAreDiscreet(t *testing.T) {
	secret, other := read(t, "{apiVersion: v1, kind: Secret}"), read(t, "{apiVersion: v1, kind: ConfigMap}")
	gk := schema.GroupKind{Kind: "Secret"}
	invalid := apierrors.NewInvalid(gk, "a", field.ErrorList{field.Invalid(field.NewPath("data", "key"), "mauve", "is no colour")})
	for _, err := range []error{invalid, apierrors.NewBadRequest("mauve is no colour"), apierrors.NewInternalError(errors.New("mauve"))} {
		if got := discreet(secret, err).Error(); strings.Contains(got, "mauve") || !strings.HasPrefix(got, "the API server refuses it: ") {
			t.Errorf("got %s", got)
		}
		if got := discreet(other, err); !errors.Is(got, err) {
			t.Errorf("of another kind: got %v", got)
		}
	}
	if got := discreet(secret, invalid).Error(); got != "the API server refuses it: Invalid data.key" {
		t.Errorf("got %s", got)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("no"))
	if got := discreet(secret, forbidden); !errors.Is(got, forbidden) {
		t.Errorf("got %v", got)
	}
	if discreet(secret, nil) != nil {
		t.Error("no error is none")
	}
}
