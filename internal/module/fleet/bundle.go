package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// readTime bounds the reading of one bundle.
const readTime = 10 * time.Second

const (
	objects = "OBJ_" + protocol.ObjectsModules
	metaOf  = "$O." + protocol.ObjectsModules + ".M."
	chunkOf = "$O." + protocol.ObjectsModules + ".C."
)

// readBundle reads the code of a version and makes sure that it is that. It asks
// the stream's leader for one message at a time: a gate needs no consumer for it,
// whose deliver subject would be a choice. Errors wrap ErrNoBundle or ErrAltered
// where the store answers.
func readBundle(ctx context.Context, nc *nats.Conn, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	about, err := readMeta(ctx, nc, version)
	if err != nil {
		return "", err
	}
	var code strings.Builder
	for m, err := range bus.ReadStream(ctx, nc, objects, 1, chunkOf+about.NUID) {
		if err != nil {
			return "", fmt.Errorf("reading module %s: %w", version, err)
		}
		if code.Len()+len(m.Data) > module.MaxCode {
			return "", fmt.Errorf("%w: %s has more than %d bytes", ErrAltered, version, module.MaxCode)
		}
		code.Write(m.Data)
	}
	if (module.Source{Code: code.String()}).Version() != version {
		return "", fmt.Errorf("%w: %s", ErrAltered, version)
	}
	return code.String(), nil
}

// meta is what this package needs of an object's own description.
type meta struct {
	NUID    string `json:"nuid"`
	Deleted bool   `json:"deleted"`
}

func readMeta(ctx context.Context, nc *nats.Conn, version string) (out meta, err error) {
	for m, err := range bus.ReadStream(ctx, nc, objects, 1, metaOf+base64.URLEncoding.EncodeToString([]byte(version))) {
		if err != nil {
			return meta{}, fmt.Errorf("reading module %s: %w", version, err)
		}
		out = meta{}
		if err := json.Unmarshal(m.Data, &out); err != nil {
			return meta{}, fmt.Errorf("%w: %s: its description does not read", ErrAltered, version)
		}
	}
	switch {
	case out.NUID == "" || out.Deleted:
		return meta{}, fmt.Errorf("%w: %s", ErrNoBundle, version)
	case !protocol.ValidToken(out.NUID): // it becomes part of a filter
		return meta{}, fmt.Errorf("%w: %s: its description does not read", ErrAltered, version)
	}
	return out, nil
}
