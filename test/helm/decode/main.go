// Command decode reads the documents of Kubernetes on standard input into the types of one version of its API, and fails on any
// field that they do not have. It prints the objects, one in JSON per line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// custom is the group of the Prometheus Operator, whose types are not a part of Kubernetes.
const custom = "monitoring.coreos.com/"

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme,
		core.AddToScheme, networking.AddToScheme, policy.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			fail(err)
		}
	}
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme,
		serializer.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			fail(err)
		}
		content, err := yaml.ToJSON(document)
		if err != nil {
			fail(fmt.Errorf("%w in:\n%s", err, document))
		}
		if string(content) == "null" {
			continue
		}
		var object any
		if err := json.Unmarshal(content, &object); err != nil {
			fail(err)
		}
		version, _ := object.(map[string]any)["apiVersion"].(string)
		if !strings.HasPrefix(version, custom) {
			if _, _, err := strict.Decode(document, nil, nil); err != nil {
				fail(fmt.Errorf("%w in:\n%s", err, document))
			}
		}
		fmt.Println(string(content))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
