package rules

import (
	"fmt"
	"maps"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Before is what a pod had, of all that the rules may change: so that a patch can be written without marshalling the
// whole pod and comparing it with what came.
type Before struct {
	annotations map[string]string
	scheduler   string
	affinity    *corev1.Affinity
	requests    []corev1.ResourceRequirements
}

// Remember copies those parts.
func Remember(pod *corev1.Pod) Before {
	before := Before{
		annotations: maps.Clone(pod.Annotations), scheduler: pod.Spec.SchedulerName, affinity: pod.Spec.Affinity.DeepCopy(),
	}
	for i := range pod.Spec.Containers {
		before.requests = append(before.requests, *pod.Spec.Containers[i].Resources.DeepCopy())
	}
	return before
}

// Patch gives whole parts where they changed; `add` replaces what is there.
func (b Before) Patch(pod *corev1.Pod) []jsonpatch.Operation {
	var operations []jsonpatch.Operation
	add := func(path string, value any) {
		operations = append(operations, jsonpatch.NewOperation("add", path, value))
	}
	if !maps.Equal(b.annotations, pod.Annotations) {
		add("/metadata/annotations", pod.Annotations)
	}
	if b.scheduler != pod.Spec.SchedulerName {
		add("/spec/schedulerName", pod.Spec.SchedulerName)
	}
	if !equality.Semantic.DeepEqual(b.affinity, pod.Spec.Affinity) {
		add("/spec/affinity", pod.Spec.Affinity)
	}
	for i := range pod.Spec.Containers {
		if !equality.Semantic.DeepEqual(b.requests[i], pod.Spec.Containers[i].Resources) {
			add(fmt.Sprintf("/spec/containers/%d/resources", i), pod.Spec.Containers[i].Resources)
		}
	}
	return operations
}
