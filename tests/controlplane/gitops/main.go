// What Argo CD and Flux do with manifests, done by their own libraries: one program, so that tests need neither tool.
//
//	gitops argo sync | prune | diff | server-diff   with Argo CD's engine, as an Application NAME
//	gitops argo health                              what Argo CD thinks of each live object
//	gitops helm-controller diff                     drift detection of a HelmRelease NAME
//	gitops kustomize-controller apply | diff | prune   as a Kustomization NAME
//
// Manifests come as a YAML stream on stdin; KUBECONFIG, NAME and NAMESPACE (of the release) are environment variables.
// It prints one JSON list of findings. Status 1: something went wrong, which stderr says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fluxcd/pkg/ssa/utils"
)

const patience = 2 * time.Minute

// finding is one line of an answer: an object, and what a tool says of it.
type finding struct {
	Object string `json:"object"`           // Kind/name
	Says   string `json:"says"`             // one word of the tool's own
	Detail string `json:"detail,omitempty"` // a patch or a message
}

// job is what a command works on.
type job struct {
	config    *rest.Config
	name      string
	namespace string
	manifests []*unstructured.Unstructured
}

func (j job) target(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + object.GetName()
}

var commands = map[string]func(context.Context, job) ([]finding, error){
	"argo sync":                  argoSync,
	"argo prune":                 argoPrune,
	"argo diff":                  argoDiff,
	"argo server-diff":           argoServerDiff,
	"argo health":                argoHealth,
	"helm-controller diff":       helmDiff,
	"kustomize-controller apply": kustomizeApply,
	"kustomize-controller diff":  kustomizeDiff,
	"kustomize-controller prune": kustomizePrune,
}

func main() {
	// Their logs are for operators; what they find is in their answers.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	command, known := commands[name]
	if !known {
		return fmt.Errorf("found command %q, see the head of main.go for those that there are", name)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	manifests, err := utils.ReadObjects(strings.NewReader(string(text)))
	if err != nil {
		return fmt.Errorf("manifests on stdin: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := command(ctx, job{config, os.Getenv("NAME"), os.Getenv("NAMESPACE"), manifests})
	if err != nil {
		return err
	}
	if found == nil {
		found = []finding{}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
