package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/memcached-operator/reconciler/kind"
	"github.com/example/memcached-operator/reconciler/render"
	"github.com/example/memcached-operator/reconciler/validate"
)

// The Backup under test, its bucket, and where the script puts its backups there.
const (
	namespace, name = "production", "mydb-nightly"
	bucket          = "mydb-backups"
	folder          = "nightly/" + namespace + "/" + name
	claim           = "data-mydb-0"
)

// nobody is who runs the script where the tests run as root, who may read every file.
const nobody = 65534

// run is the script and the world it runs in.
type run struct {
	t      *testing.T
	script string            // file
	env    map[string]string // the CronJob's, pointed at what stands in for the pod's volumes
	source string            // folder of the claim's volume
	bin    string            // the folder from which it takes rclone
}

// newRun renders a Backup whose destination is the server, after changing its spec, and returns its script with the volume
// of its claim empty.
func newRun(t *testing.T, s *server, change func(spec, destination map[string]any)) *run {
	t.Helper()
	destination := map[string]any{"s3Bucket": bucket, "s3Prefix": "nightly/", "endpoint": s.url}
	spec := map[string]any{"schedule": "0 2 * * *", "target": map[string]any{"kind": "StatefulSet", "name": "mydb"}, "destination": destination}
	if change != nil {
		change(spec, destination)
	}
	config, cron := renderBackup(t, spec)

	// Others must be able to read it: t.TempDir is closed to them.
	dir, err := os.MkdirTemp("", "backup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	programs, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, script: filepath.Join(dir, "backup.sh"), env: map[string]string{}, source: filepath.Join(dir, "volumes", claim), bin: filepath.Join(dir, "bin")}
	rclone, err := os.ReadFile(filepath.Join(programs, "rclone"))
	mode := fs.FileMode(0o755)
	for _, err := range []error{
		err, os.Chmod(dir, mode), os.MkdirAll(r.source, mode), os.MkdirAll(r.bin, mode), os.Mkdir(filepath.Join(dir, "tmp"), mode),
		os.Chmod(filepath.Join(dir, "tmp"), 0o777), os.MkdirAll(filepath.Join(s.root, bucket), mode),
		os.WriteFile(r.script, []byte(config.Data["backup.sh"]), 0o644), os.WriteFile(filepath.Join(r.bin, "rclone"), rclone, mode),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}

	pod := cron.Spec.JobTemplate.Spec.Template.Spec
	if diff := cmp.Diff([]string{"/bin/sh", "/script/backup.sh"}, pod.Containers[0].Command); diff != "" {
		t.Fatalf("the container runs something else (-want +got):\n%s", diff)
	}
	secret := map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey}
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom == nil {
			r.env[e.Name] = e.Value
		} else if value, found := secret[e.ValueFrom.SecretKeyRef.Key]; found {
			r.env[e.Name] = value
		}
	}
	// What the pod has as mounts.
	for key, stand := range map[string]string{"BACKUP_SOURCE": filepath.Dir(r.source), "BACKUP_TERMINATION_LOG": filepath.Join(dir, "tmp", "termination-log")} {
		if r.env[key] == "" {
			t.Fatalf("the CronJob sets no %s", key)
		}
		r.env[key] = stand
	}
	r.env["TMPDIR"], r.env["HOME"] = filepath.Join(dir, "tmp"), filepath.Join(dir, "tmp")
	r.env["AWS_EC2_METADATA_DISABLED"] = "true" // stay on the loopback interface
	return r
}

// renderBackup returns the ConfigMap and the CronJob that the operator would apply.
func renderBackup(t *testing.T, spec map[string]any) (config corev1.ConfigMap, cron batchv1.CronJob) {
	t.Helper()
	kinds, err := kind.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	k := kind.Find(kinds, schema.GroupVersionKind{Group: "ops.cloudista.io", Version: "v1alpha1", Kind: "Backup"})
	values, err := validate.Spec(k, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := render.Render(k, values, render.Target{Name: name, Namespace: namespace, KubeVersion: "v1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]any{"ConfigMap": &config, "CronJob": &cron}
	for _, o := range manifest.Objects {
		if object, wanted := into[o.GetKind()]; wanted {
			if err := decode(o, object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return config, cron
}

func decode(o *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}

// result is how the script ended.
type result struct {
	code    int    // -1 when it was killed
	message string // what it left for the pod's status
	log     string
}

// do runs the script. Two backups never begin in the same second: they would have the same name.
func (r *run) do() result {
	r.t.Helper()
	now := time.Now()
	time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now))
	cmd := r.command("/bin/sh", r.script)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	message, err := os.ReadFile(r.env["BACKUP_TERMINATION_LOG"])
	if err != nil {
		r.t.Fatalf("%v; log:\n%s", err, out)
	}
	return result{code: cmd.ProcessState.ExitCode(), message: string(message), log: string(out)}
}

// succeed runs the script and fails the test unless it makes a backup. It returns the backup's name.
func (r *run) succeed() string {
	r.t.Helper()
	before := r.complete()
	got := r.do()
	if got.code != 0 || got.message != "" {
		r.t.Fatalf("the backup failed with code %d and message %q; log:\n%s", got.code, got.message, got.log)
	}
	for _, b := range r.complete() {
		if !slices.Contains(before, b) {
			return b
		}
	}
	r.t.Fatalf("there is no new backup; log:\n%s", got.log)
	return ""
}

// command returns a program that runs in the script's environment, as nobody in a process group of its own.
func (r *run) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = r.env["TMPDIR"]
	cmd.Env = []string{"PATH=" + r.bin + ":" + os.Getenv("PATH")}
	for key, value := range r.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// rclone runs rclone with the script's settings and returns the lines that it prints.
func (r *run) rclone(args ...string) []string {
	r.t.Helper()
	cmd := r.command(filepath.Join(r.bin, "rclone"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("rclone %s: %v:\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}

// at is rclone's path of something in the backups' folder.
func at(path string) string { return "s3:" + bucket + "/" + folder + "/" + path }

// folders returns the names of all backups, the unfinished ones included; complete only those that count, as
// docs/backup.md lists them.
func (r *run) folders() []string {
	r.t.Helper()
	var names []string
	for _, f := range r.rclone("lsf", "--dirs-only", "--s3-directory-markers=false", at("")) {
		names = append(names, strings.TrimSuffix(f, "/"))
	}
	return names
}

func (r *run) complete() []string {
	r.t.Helper()
	var names []string
	for _, f := range r.rclone("lsf", "--recursive", "--max-depth", "2", "--files-only", "--include", "/*/complete", "--s3-directory-markers=false", at("")) {
		names = append(names, strings.TrimSuffix(f, "/complete"))
	}
	slices.Sort(names)
	return names
}

// write puts a file into the volume.
func (r *run) write(path, content string, mode fs.FileMode) {
	r.t.Helper()
	file := filepath.Join(r.source, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		r.t.Fatal(err)
	}
}

// instead makes the script call rclone through a shell script in which before comes first.
func (r *run) instead(before string) {
	r.t.Helper()
	real := filepath.Join(r.bin, "real-rclone")
	if err := os.Rename(filepath.Join(r.bin, "rclone"), real); err != nil {
		r.t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\n%s\nexec %s \"$@\"\n", before, real)
	if err := os.WriteFile(filepath.Join(r.bin, "rclone"), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// tree describes all below dir: the content and mode of files, where links lead.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			all[below], err = os.Readlink(path)
		case e.IsDir():
			all[below] = "folder"
		default:
			info, infoErr := e.Info()
			content, readErr := os.ReadFile(path)
			if err = errors.Join(infoErr, readErr); err == nil {
				all[below] = fmt.Sprintf("%s %q", info.Mode(), content)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestABackupRestoresWhatWasThere(t *testing.T) {
	r := newRun(t, startServer(t), nil)
	r.write("plain", "hello", 0o644)
	r.write("program", "#!/bin/sh", 0o755)
	r.write("empty", "", 0o644)
	r.write("a/b/c/deep", "below", 0o644)
	r.write("big", strings.Repeat("0123456789abcdef", 1<<16), 0o644)
	r.write("it's $HOME `id` \"quoted\" ; & | * ? ünï.txt", "odd name", 0o644)
	r.write("-rf", "like a flag", 0o644)
	if err := errors.Join(os.Mkdir(filepath.Join(r.source, "nothing"), 0o755), os.Symlink("a/b", filepath.Join(r.source, "link"))); err != nil {
		t.Fatal(err)
	}
	want := tree(t, r.source)
	r.write("lost+found/inode", "is the file system's own", 0o644)

	backup := r.succeed()
	if diff := cmp.Diff([]string{claim}, r.rclone("cat", at(backup+"/complete"))); diff != "" {
		t.Errorf("the mark names the volumes (-want +got):\n%s", diff)
	}
	// As docs/backup.md says, by the files' owner or by root.
	restored := filepath.Join(r.env["TMPDIR"], "restored")
	restore := r.command(filepath.Join(r.bin, "rclone"), "copy", "--metadata", "--links", "--create-empty-src-dirs", at(backup+"/"+claim), restored)
	restore.SysProcAttr.Credential = nil
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("restoring: %v:\n%s", err, out)
	}
	if diff := cmp.Diff(want, tree(t, restored)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func TestOldBackupsExpireAndUnfinishedOnesDoNotCount(t *testing.T) {
	r := newRun(t, startServer(t), func(spec, _ map[string]any) { spec["retentionDays"] = int64(3) })
	r.write("file", "content", 0o644)
	stamp := func(age time.Duration) string { return time.Now().Add(-age).UTC().Format("2006-01-02T15-04-05Z") }
	const day = 24 * time.Hour
	old, older, recent, dead, alive := stamp(4*day), stamp(400*day), stamp(2*day), stamp(2*day+time.Hour), stamp(time.Hour)
	for _, b := range []string{old, older, recent, dead, alive, "somebody-elses"} {
		r.rclone("copy", filepath.Dir(r.source), at(b))
	}
	for _, b := range []string{old, older, recent} {
		r.rclone("copy", r.script, at(b)+"/complete.d") // a file of another name is no mark
		r.rclone("copyto", r.script, at(b)+"/complete")
	}
	before := r.complete()
	if diff := cmp.Diff([]string{older, old, recent}, before); diff != "" {
		t.Fatalf("complete before (-want +got):\n%s", diff)
	}

	backup := r.succeed()
	if diff := cmp.Diff([]string{recent, backup}, r.complete()); diff != "" {
		t.Errorf("complete (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{recent, alive, backup, "somebody-elses"}, r.folders()); diff != "" {
		t.Errorf("all folders, of which the one from an hour ago may still be in the making (-want +got):\n%s", diff)
	}
}

func TestTheLastGoodBackupOutlivesFailures(t *testing.T) {
	r := newRun(t, startServer(t), nil)
	r.write("file", "content", 0o644)
	const last = "2001-02-03T04-05-06Z"
	r.rclone("copyto", r.script, at(last)+"/complete")
	r.instead(`[ "$1" != check ] || exit 1`)
	if got := r.do(); got.code != 1 {
		t.Errorf("a failed comparison gives code %d; log:\n%s", got.code, got.log)
	}
	if diff := cmp.Diff([]string{last}, r.folders()); diff != "" {
		t.Errorf("a failed backup removes itself and nothing else (-want +got):\n%s", diff)
	}
}

func TestAnInterruptedBackupIsNoneAndIsRemovedLater(t *testing.T) {
	r := newRun(t, startServer(t), nil)
	r.write("file", "content", 0o644)
	// The volumes are copied, and not compared yet: everything dies, as when a node does.
	r.instead(`[ "$1" != check ] || kill -KILL 0`)
	if got := r.do(); got.code != -1 {
		t.Fatalf("the script was to be killed, and ended with %d; log:\n%s", got.code, got.log)
	}
	left := r.folders()
	if len(left) != 1 || len(r.complete()) != 0 {
		t.Fatalf("left are %v, complete %v; want one unfinished backup", left, r.complete())
	}

	if err := os.Rename(filepath.Join(r.bin, "real-rclone"), filepath.Join(r.bin, "rclone")); err != nil {
		t.Fatal(err)
	}
	first := r.succeed()
	if diff := cmp.Diff([]string{left[0], first}, r.folders()); diff != "" {
		t.Errorf("within the deadline it might still be in the making (-want +got):\n%s", diff)
	}
	r.env["BACKUP_DEADLINE_SECONDS"] = "1"
	second := r.succeed()
	if diff := cmp.Diff([]string{first, second}, r.folders()); diff != "" {
		t.Errorf("after the deadline (-want +got):\n%s", diff)
	}
}

func TestFilesThatChangeMeanwhile(t *testing.T) {
	for changing, want := range map[string]int{"Fail": 1, "Accept": 0} {
		t.Run(changing, func(t *testing.T) {
			r := newRun(t, startServer(t), func(spec, destination map[string]any) {
				spec["changingFiles"] = changing
				destination["s3Prefix"] = "nightly" // the slash is added
			})
			r.write("steady", "content", 0o644)
			r.write("changing", "content", 0o666)
			if err := os.Chmod(filepath.Join(r.source, "changing"), 0o666); err != nil { // whatever the umask is
				t.Fatal(err)
			}
			r.instead(`[ "$1" != check ] || echo more >>"$BACKUP_SOURCE"/` + claim + `/changing`)
			got := r.do()
			if got.code != want || (want == 1) != strings.HasPrefix(got.message, "Backup failed: files changed while they were copied: ") {
				t.Errorf("code %d, message %q; want code %d; log:\n%s", got.code, got.message, want, got.log)
			}
			if complete := r.complete(); len(complete) != 1-want {
				t.Errorf("complete are %v", complete)
			}
		})
	}
}

func TestFailuresSayWhatToDo(t *testing.T) {
	s := startServer(t)
	for _, c := range []struct {
		reason string
		change func(spec, destination map[string]any)
		env    map[string]string
		closed bool // whether the one file is closed to everybody
		code   int
		want   string
	}{
		{
			reason: "the secret key is wrong",
			env:    map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"},
			code:   2,
			want:   s.url + " refuses the access key: correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the Secret that spec.destination.credentialsSecret names",
		},
		{
			reason: "the access key is wrong",
			env:    map[string]string{"AWS_ACCESS_KEY_ID": "wrong"},
			code:   2,
			want:   s.url + " refuses the access key: correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the Secret that spec.destination.credentialsSecret names",
		},
		{
			reason: "neither a Secret nor an identity of the cloud",
			change: func(spec, _ map[string]any) { spec["serviceAccountName"] = "default" },
			code:   2,
			want:   "there are no credentials: name a Secret in spec.destination.credentialsSecret, or a ServiceAccount with an identity of the cloud in spec.serviceAccountName",
		},
		{
			reason: "no such bucket",
			change: func(_, destination map[string]any) { destination["s3Bucket"] = "nowhere" },
			code:   2,
			want:   "there is no bucket nowhere at " + s.url + ": create it, or correct spec.destination.s3Bucket",
		},
		{
			reason: "nobody listens there; it may yet",
			change: func(_, destination map[string]any) { destination["endpoint"] = "http://127.0.0.1:1" },
			code:   1,
			want:   "no S3 server answers at http://127.0.0.1:1: correct spec.destination.endpoint, or let the network and the server's certificate pass",
		},
		{
			reason: "a file is somebody else's",
			closed: true,
			code:   2,
			want:   "user %d may not read %s/file: set spec.securityContext to a user or group that may",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r := newRun(t, s, c.change)
			r.write("file", "content", 0o644)
			maps.Copy(r.env, c.env)
			want := c.want
			if c.closed {
				uid := os.Geteuid()
				if uid == 0 {
					uid = nobody
				}
				want = fmt.Sprintf(want, uid, r.source)
				if err := os.Chmod(filepath.Join(r.source, "file"), 0); err != nil {
					t.Fatal(err)
				}
			}
			got := r.do()
			if got.code != c.code {
				t.Errorf("code %d, want %d; log:\n%s", got.code, c.code, got.log)
			}
			if diff := cmp.Diff("Backup failed: "+want+"\n", got.message); diff != "" {
				t.Errorf("message (-want +got):\n%s\nlog:\n%s", diff, got.log)
			}
			if !strings.HasSuffix(got.log, got.message) {
				t.Errorf("the message is not the log's last line:\n%s", got.log)
			}
		})
	}
}
