package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// backupOf returns the fields of a Backup with a schedule.
func backupOf(schedule string) string {
	return "spec: {schedule: \"" + schedule + "\", target: {kind: StatefulSet, name: mydb}, destination: {s3Bucket: mydb-backups}, retentionDays: 30}"
}

// TestBackup is the walk that tutorials take, and a backup made by hand. It is the only test with Backups on the shared cluster,
// so that it can look at the watches that they alone need.
func TestBackup(t *testing.T) {
	t.Parallel()
	e := newTest(t)
	apply := func(schedule string) {
		t.Helper()
		e.Expect(e.applyObject("ops.cloudista.io/v1alpha1", "Backup", "mydb-nightly", backupOf(schedule))).To(Succeed())
	}
	const object = "backup/mydb-nightly"
	apply("0 2 * * *")
	e.eventuallyCondition(object, "Ready", HavePrefix("True"))
	e.Expect(e.get(object, "{.status.cronJobName} {.status.lastBackupStatus}")).To(Equal("mydb-nightly-backup None"))
	e.Expect(e.get("cronjob/mydb-nightly-backup", "{.spec.schedule}")).To(Equal("0 2 * * *"))

	apply("30 3 * * *")
	e.eventually("cronjob/mydb-nightly-backup", "{.spec.schedule}", "30 3 * * *")
	e.eventually(object, "{.status.nextBackupTime}", nextTime(time.Now(), 3, 30))

	// A claim that is missing keeps the pod from its node, and the status says so.
	e.kubectl("create", "job", "--from=cronjob/mydb-nightly-backup", "try")
	e.eventually(object, "{.status.lastBackupStatus}", "Running")
	e.Eventually(func() string { return e.get(object, "{.status.lastBackupMessage}") }, soon).
		Should(Equal(`Unschedulable: 0/3 nodes are available: persistentvolumeclaim "data-mydb-0" not found. not found`))
	e.Expect(e.condition(object, "Ready")).To(HavePrefix("True"), "one run does not matter: the next may succeed")

	volume := e.namespace
	e.Expect(e.applyObject("v1", "PersistentVolume", volume, `spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: "", hostPath: {path: /data}}`)).To(Succeed())
	t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "delete", "persistentvolume", volume, "--wait=false") })
	e.Expect(e.applyObject("v1", "PersistentVolumeClaim", "data-mydb-0",
		`spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteOnce], storageClassName: "", volumeName: `+volume+`}`)).To(Succeed())
	e.eventually(object, "{.status.lastBackupStatus}", "Succeeded")
	e.Expect(e.get(object, "{.status.lastBackupTime}")).To(Equal(e.get("job/try", "{.status.startTime}")))
	e.Expect(e.get(object, "{.status.lastSuccessfulTime}")).To(Equal(e.get("job/try", "{.status.completionTime}")))
	e.Expect(e.get(object, "{.status.lastBackupMessage}")).To(BeEmpty())

	// With the last Backup go its objects, and the watches that only Backups need.
	logged, deleted := len(env.operatorLog()), time.Now()
	e.kubectl("delete", "backup", "mydb-nightly")
	e.eventuallyGone("cronjobs,jobs,pods")
	e.eventuallyGone("configmaps,serviceaccounts", "-l", "app.kubernetes.io/managed-by=memcached-operator")
	for _, watched := range []string{"batch/v1, Kind=CronJob", "batch/v1, Kind=Job", "/v1, Kind=ConfigMap"} {
		e.eventuallyLogs(logged, "Ended watch", `"`+watched+`"`)
	}
	// The API server logs a watch when it ends.
	e.Eventually(func() []string { return endedWatches(e) }, soon, time.Second).Should(ContainElements("cronjobs", "jobs", "configmaps"))
	t.Logf("the watches ended %v after the Backup", time.Since(deleted).Round(time.Second))

	logged = len(env.operatorLog())
	apply("@daily")
	e.eventuallyCondition(object, "Ready", HavePrefix("True"))
	e.eventuallyLogs(logged, "Began watch", `"batch/v1, Kind=CronJob"`)
	e.kubectl("create", "job", "--from=cronjob/mydb-nightly-backup", "again")
	e.eventually(object, "{.status.lastBackupStatus}", "Succeeded")
}

// nextTime returns the first time after now at which the clock shows hour and minute in UTC.
func nextTime(now time.Time, hour, minute int) string {
	now = now.UTC()
	next := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	return next.Format(time.RFC3339)
}

// endedWatches returns the resources of all the operator's watches that are over.
func endedWatches(e *test) []string {
	events, err := e.env.AuditEvents()
	e.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, event := range events {
		if event.User == operatorUser && event.Verb == "watch" {
			out = append(out, event.Resource)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
