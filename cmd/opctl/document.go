package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one of the YAML or JSON documents in a file.
type document struct {
	lines []string // without their ends
	first int      // the number of the first line in the file
}

// source is an object as its author wrote it.
type source struct {
	document
	value any // what the API server would get: JSON's types, whole numbers as int64
	node  *yamlv3.Node
}

// fileNames returns the files that arguments name, and of folders those in them that kubectl would take. An error tells of arguments
// that name none; the files of the others are returned nevertheless.
func fileNames(arguments []string) ([]string, error) {
	var files []string
	var problems []error
	for _, argument := range arguments {
		names, err := fileNamesOf(argument)
		files, problems = append(files, names...), append(problems, err)
	}
	return files, errors.Join(problems...)
}

func fileNamesOf(argument string) ([]string, error) {
	if argument == "-" {
		return []string{argument}, nil
	}
	info, err := os.Stat(argument)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{argument}, nil
	}
	entries, err := os.ReadDir(argument)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if slices.Contains(fileExtensions, strings.TrimPrefix(filepath.Ext(e.Name()), ".")) && !e.IsDir() {
			files = append(files, filepath.Join(argument, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading %s: holds no .yaml, .yml or .json file", argument)
	}
	return files, nil
}

// readText returns the text of a file, - being stdin, and what to call the file.
func readText(stdin io.Reader, file string) (name string, text []byte, err error) {
	if file == "-" {
		text, err = io.ReadAll(stdin)
		return "<stdin>", text, err
	}
	text, err = os.ReadFile(file)
	return file, text, err
}

// documents takes a file's text apart as render.Decode and kubectl do, but knows the lines.
func documents(text []byte) []document {
	var all []document
	current := document{first: 1}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		after, isSeparator := strings.CutPrefix(line, "---")
		after = strings.TrimSpace(after)
		if isSeparator && (after == "" || after[0] == '#') {
			all, current = append(all, current), document{first: i + 2}
			continue
		}
		current.lines = append(current.lines, line)
	}
	return append(all, current)
}

// objects returns the objects in a document, none if it is empty. Lists are expanded. An error names file and line.
func (d document) objects(file string) ([]source, error) {
	text := strings.Join(d.lines, "\n")
	root, err := parse(text)
	if err != nil {
		return nil, d.unreadable(file, err)
	}
	// The values come from the decoder of kubectl and the operator, which knows an older YAML than that of the nodes. A key
	// that stands there twice is no error to it here: the nodes tell where.
	data, err := yaml.YAMLToJSON([]byte(text))
	var value any
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		return nil, d.unreadable(file, err)
	}
	if value == nil {
		return nil, nil
	}
	items, isList := itemsOf(value)
	if !isList {
		return []source{{document: d, value: value, node: root}}, nil
	}
	repeated(root, "", func(path string, key, first *yamlv3.Node) {
		if !strings.HasPrefix(path, "items[") { // those are told with the object
			err = fmt.Errorf("%s:%d: %s is set already in line %d", file, d.line(key), path, d.line(first))
		}
	})
	var all []source
	for i := range items {
		all = append(all, source{document: d, value: items[i], node: find(root, fmt.Sprintf("items[%d]", i), false)})
	}
	return all, err
}

// parse returns the root of a document's text.
func parse(text string) (*yamlv3.Node, error) {
	var root, next yamlv3.Node
	decoder := yamlv3.NewDecoder(strings.NewReader(text))
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case !errors.Is(decoder.Decode(&next), io.EOF):
		return nil, errors.New("has documents that a line with --- alone must separate")
	}
	return root.Content[0], nil
}

// itemsOf returns the objects in a list as kubectl prints it.
func itemsOf(value any) (items []any, isList bool) {
	object, _ := value.(map[string]any)
	name, _ := object["kind"].(string)
	items, isList = object["items"].([]any)
	return items, isList && strings.HasSuffix(name, "List")
}

// line returns the number in the file of the line in which n stands.
func (d document) line(n *yamlv3.Node) int { return d.first + n.Line - 1 }

var syntaxError = regexp.MustCompile(`^yaml: line (\d+): `)

// unreadable returns err with the file and, if err knows it, the line.
func (d document) unreadable(file string, err error) error {
	message, line := err.Error(), d.first
	if match := syntaxError.FindStringSubmatch(message); match != nil {
		n, _ := strconv.Atoi(match[1])
		message, line = message[len(match[0]):], d.first+n-1
		if strings.HasPrefix(message, "did not find expected") {
			line++ // The library counts from 0 what its parser finds, and from 1 what its scanner does.
		}
		line = min(line, d.first+len(d.lines)-1)
	}
	return fmt.Errorf("%s:%d: %s", file, line, strings.TrimPrefix(message, "yaml: "))
}
