package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/sdk"
)

// moduleTemplate is what a new module begins as; it is a module that works.
//
//go:embed module.ts.txt
var moduleTemplate string

// moduleSettings are those of tsc and of editors for a folder of modules.
const moduleSettings = `{
  "compilerOptions": {
    "target": "es2020",
    "lib": ["es2020"],
    "module": "esnext",
    "moduleResolution": "bundler",
    "resolveJsonModule": true,
    "strict": true,
    "noEmit": true,
    "types": []
  },
  "include": ["**/*.ts"]
}
`

func moduleNew(env *Env) *cobra.Command {
	var dir string
	var folder bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a permission module to begin with",
		Long: `Writes NAME.ts, a small module that works, and beside it permissions.d.ts (the types of the library)
and tsconfig.json, so that an editor and tsc know them. Nothing is overwritten but an older
permissions.d.ts, which is no file to edit.

Modules live in .assent/permissions of a project, in ~/.config/assent/permissions of the machine that
runs the gate, and in the fleet's store. With --folder the module gets a folder of its own with a
package.json, for one that has dependencies.`,
		Example: "  assent module new release --dir .assent/permissions\n  assent module new corpus --folder",
		Args:    exactArgs("a name"),
		RunE: func(_ *cobra.Command, args []string) error {
			return newModule(env, args[0], dir, folder)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder of modules to write to")
	cmd.Flags().BoolVar(&folder, "folder", false, "give the module a folder with a package.json")
	return cmd
}

// newFile is one that `assent module new` writes.
type newFile struct {
	name, text string
	// kept: one that is there stays as it is.
	kept bool
}

func newModule(env *Env, name, dir string, folder bool) error {
	if !module.ValidName(name) || strings.HasSuffix(name, ".d") {
		return usagef("%q is no name of a module: letters, digits, dot, dash and underscore, at most 64", name)
	}
	files := []newFile{{name: name + ".ts", text: strings.ReplaceAll(moduleTemplate, "NAME", name)}}
	if folder {
		files[0].name = filepath.Join(name, "index.ts")
		files = append(files, newFile{name: filepath.Join(name, "package.json"), text: "{\n  \"private\": true,\n  \"type\": \"module\",\n  \"dependencies\": {},\n  \"assent\": { \"permissions\": [\"./index.ts\"] }\n}\n"})
	}
	files = append(files, newFile{"tsconfig.json", moduleSettings, true})
	for _, f := range files {
		if err := f.write(env, dir); err != nil {
			return err
		}
	}
	if err := writeTypes(env, filepath.Join(dir, "permissions.d.ts")); err != nil {
		return err
	}
	_, err := fmt.Fprintf(env.Stdout, "\nSee what it says:\n  assent module test %s --call '{\"tool\":\"bash\",\"input\":{\"command\":\"git push\"}}'\n",
		filepath.Join(dir, filepath.Dir(files[0].name), testTarget(files[0].name)))
	return err
}

// testTarget is what `assent module test` is given for a file: its folder, where
// it is named in a package.json.
func testTarget(file string) string {
	if filepath.Base(file) == "index.ts" {
		return ""
	}
	return filepath.Base(file)
}

func (f newFile) write(env *Env, dir string) error {
	path := filepath.Join(dir, f.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing a new module: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist) && f.kept:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is there already: choose another name, or edit it", path)
	case err != nil:
		return fmt.Errorf("writing a new module: %w", err)
	}
	_, err = file.WriteString(f.text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = fmt.Fprintln(env.Stdout, path)
	return err
}

// writeTypes writes the types of the library, over those of another version.
func writeTypes(env *Env, path string) error {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == sdk.Types {
		return nil
	}
	if err == nil && !strings.Contains(string(old), `declare module "`+sdk.Name+`"`) {
		return fmt.Errorf("%s is not ours: the types of the library would go there", path)
	}
	if err := os.WriteFile(path, []byte(sdk.Types), 0o644); err != nil {
		return fmt.Errorf("writing the types of the library: %w", err)
	}
	_, err = fmt.Fprintln(env.Stdout, path)
	return err
}
