// Command webhook is what Roost's webhook is measured against: the same rules in a Go admission webhook as it is usually
// written, with controller-runtime's server, decoder and patch.
//
// Owns the wiring; reads Roost's own release.json and keeps informers.
// With -apply it reads one AdmissionReview from each file given and prints the patched pods with what became of the gate, one
// JSON object a line: so a test can hold both webhooks' results side by side.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"roost.invalid/benchmarks/internal/facts"
	"roost.invalid/benchmarks/internal/policy"
	"roost.invalid/benchmarks/internal/rules"
)

type options struct {
	policy, facts, kubeconfig, certificate, key string
	port                                        int
	apply                                       bool
}

func main() {
	var given options
	flag.StringVar(&given.policy, "policy", "", "Roost's release.json")
	flag.StringVar(&given.facts, "facts", "", "nodes, namespaces and pods from a file instead of a cluster")
	flag.StringVar(&given.kubeconfig, "kubeconfig", "", "cluster to watch")
	flag.StringVar(&given.certificate, "cert", "", "PEM file")
	flag.StringVar(&given.key, "key", "", "PEM file, in the certificate's folder")
	flag.IntVar(&given.port, "port", 9443, "on 127.0.0.1")
	flag.BoolVar(&given.apply, "apply", false, "print patched pods and end")
	flag.Parse()
	if err := run(given, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run(given options, files []string) error {
	log.SetLogger(zap.New())
	ctx := signals.SetupSignalHandler()
	handler, err := newHandler(ctx, given)
	if err != nil {
		return err
	}
	if given.apply {
		return apply(ctx, handler, files)
	}
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: given.port,
		CertDir: filepath.Dir(given.certificate), CertName: filepath.Base(given.certificate), KeyName: filepath.Base(given.key),
	})
	server.Register("/mutate", &webhook.Admission{Handler: handler})
	server.WebhookMux().HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return server.Start(ctx)
}

func newHandler(ctx context.Context, given options) (admission.Handler, error) {
	document, err := policy.Load(given.policy)
	if err != nil {
		return nil, err
	}
	known, err := newFacts(ctx, given, document)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return &podPlacer{decoder: admission.NewDecoder(scheme), engine: rules.New(document, known)}, nil
}

func newFacts(ctx context.Context, given options, document *policy.Document) (*facts.Facts, error) {
	if given.facts != "" {
		return facts.FromFile(document, given.facts)
	}
	if given.kubeconfig == "" {
		return nil, errors.New("neither -facts nor -kubeconfig given")
	}
	config, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return facts.Watch(ctx, client, document)
}

type podPlacer struct {
	decoder admission.Decoder
	engine  *rules.Engine
}

// Handle is what kubebuilder's own examples do: decode, change the typed pod, marshal, and let the difference be the patch.
func (p *podPlacer) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := p.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	class, degraded := p.engine.Apply(pod, request.Namespace)
	if class == "" {
		return admission.Allowed("")
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	response := admission.PatchResponseFromRaw(request.Object.Raw, changed)
	tell(&response, class, degraded)
	return response
}

// tell says in the audit log, and to whoever creates the pod, what became of it, as Roost does.
func tell(response *admission.Response, class, degraded string) {
	response.AuditAnnotations = map[string]string{"class": class}
	if degraded != "" {
		response.AuditAnnotations["gate"] = degraded
		response.Warnings = append(response.Warnings, "gate: degraded to a preference: "+degraded)
	}
}

func apply(ctx context.Context, handler admission.Handler, files []string) error {
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(raw, &review); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		response := handler.Handle(ctx, admission.Request{AdmissionRequest: *review.Request})
		if err := response.Complete(admission.Request{AdmissionRequest: *review.Request}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		patched := review.Request.Object.Raw
		if len(response.Patch) > 0 {
			patch, err := jsonpatch.DecodePatch(response.Patch)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if patched, err = patch.Apply(patched); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		placed, err := json.Marshal(map[string]any{"pod": json.RawMessage(patched), "gate": response.AuditAnnotations["gate"]})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fmt.Println(string(placed))
	}
	return nil
}
