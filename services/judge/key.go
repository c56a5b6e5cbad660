package judge

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/assent-dev/assent/internal/llm"
)

// maxKey bounds a key, in bytes.
const maxKey = 16 << 10

// key is the key for the model server, "" where the link needs none. Its errors
// wrap llm.ErrAuth, and show nothing of what may be a key.
func (c LinkConfig) key(env func(string) (string, bool)) (string, error) {
	switch {
	case c.APIKeyFile != "":
		return readKey(c.APIKeyFile)
	case c.APIKeyEnv == "":
		return "", nil
	}
	key, _ := env(c.APIKeyEnv)
	if key = strings.TrimSpace(key); key == "" {
		return "", fmt.Errorf("%w: the environment variable %s is not set: export the key there and start again", llm.ErrAuth, c.APIKeyEnv)
	}
	return oneLine(key, "the environment variable "+c.APIKeyEnv)
}

// readKey reads a key's file, which nobody but its owner may read. The file that
// was opened is the one that is looked at.
func readKey(path string) (string, error) {
	// Looked at before it is opened too: opening a pipe would wait for a writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is no file: name in apiKeyFile the file that holds the key", llm.ErrAuth, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: reading apiKeyFile: %w: put the key there, or name the file that holds it", llm.ErrAuth, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: reading apiKeyFile: %w", llm.ErrAuth, err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%w: %s is no file: name in apiKeyFile the file that holds the key", llm.ErrAuth, path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%w: others than its owner may read or write %s (mode %04o): run `chmod 600 %s`, and change the key if it has been read", llm.ErrAuth, path, info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("%w: reading apiKeyFile: %w", llm.ErrAuth, err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("%w: %s is empty: put the key into it", llm.ErrAuth, path)
	}
	return oneLine(key, path)
}

// oneLine refuses what cannot be a key: a header would be cut in two by a line
// break, and a file with several lines is another one than was meant.
func oneLine(key, where string) (string, error) {
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("%w: %s holds something else than one key: want one word on one line", llm.ErrAuth, where)
	}
	return key, nil
}
