package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// These are the Dockerfile's too.
const (
	entrypoint = "/manager"
	user       = "65532:65532"
)

// scratch is the base image without content, as in a Dockerfile.
const scratch = "scratch"

// contents is what the image is made of.
type contents struct {
	Binary            string // path of the manager
	Base              string // image reference, or scratch
	Arch              string // Go's name of the architecture
	Version, Revision string // labels; left out if empty
	Created           time.Time
}

// build returns the image: the base's layers and one with the manager.
func build(ctx context.Context, c contents) (v1.Image, error) {
	binary, err := os.ReadFile(c.Binary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no binary %s: run `make build`", c.Binary)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the binary: %w", err)
	}
	if err := checkStatic(binary, c.Arch); err != nil {
		return nil, fmt.Errorf("binary %s: %w; build it by `GOOS=linux GOARCH=%s CGO_ENABLED=0 go build`", c.Binary, err, c.Arch)
	}
	base, labels, err := baseImage(ctx, c.Base, c.Arch)
	if err != nil {
		return nil, err
	}
	layer, err := binaryLayer(base, binary, c.Created)
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: c.Created}, CreatedBy: "COPY manager " + entrypoint},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	img, err = configure(img, c, labels)
	if err != nil {
		return nil, fmt.Errorf("writing the image's configuration: %w", err)
	}
	return img, nil
}

// baseImage returns the image that ref names, for linux/arch, and the labels that tell of it.
func baseImage(ctx context.Context, ref, arch string) (v1.Image, map[string]string, error) {
	if ref == scratch {
		// Its media types are Docker's, as are those that loading a file yields: the digest stays the same.
		return empty.Image, nil, nil
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, nil, fmt.Errorf("reading -base: %w", err)
	}
	img, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		return nil, nil, fmt.Errorf("pulling the base image %s for linux/%s: %w\nwithout a registry, `-base scratch` (`make image BASE=scratch`) makes an image of the binary alone", ref, arch, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the base image %s: %w", ref, err)
	}
	// Only an index is asked for the platform: a single image comes as it is.
	if config.OS != "linux" || config.Architecture != arch {
		return nil, nil, fmt.Errorf("the base image %s is for %s/%s, not for linux/%s", ref, config.OS, config.Architecture, arch)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the base image %s: %w", ref, err)
	}
	return img, map[string]string{
		"org.opencontainers.image.base.name":   parsed.Name(),
		"org.opencontainers.image.base.digest": digest.String(),
	}, nil
}

// binaryLayer returns a layer with the manager, of the media type that belongs to base's.
func binaryLayer(base v1.Image, binary []byte, modified time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: entrypoint[1:], Size: int64(len(binary)), Mode: 0o755, ModTime: modified}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layerType := types.DockerLayer
	if t, err := base.MediaType(); err != nil {
		return nil, err
	} else if t == types.OCIManifestSchema1 {
		layerType = types.OCILayer
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching, tarball.WithMediaType(layerType))
}

// configure says how to start the image, and what it is; the base's environment and labels stay.
func configure(img v1.Image, c contents, labels map[string]string) (v1.Image, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", c.Arch
	config.Created = v1.Time{Time: c.Created}
	config.Config.Entrypoint, config.Config.Cmd = []string{entrypoint}, nil
	config.Config.User = user
	config.Config.WorkingDir = "/"
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	maps.Copy(config.Config.Labels, labels)
	for key, value := range map[string]string{
		"title":       "memcached-operator",
		"description": "Serves the custom resource Memcached from a CUE schema and a Helm chart.",
		"source":      "https://github.com/example/memcached-operator",
		"licenses":    "Apache-2.0",
		"version":     c.Version,
		"revision":    c.Revision,
	} {
		if value != "" {
			config.Config.Labels["org.opencontainers.image."+key] = value
		}
	}
	return mutate.ConfigFile(img, config)
}
