{{- /*
What Helm alone needs, written by hand, as are `_names.tpl` and `_images.tpl`. Each takes a list whose first item is the chart's
root (`$`), but for minor_reached, merge, core_pod and laid_over. tests/parity/ holds them and generator/render/functions.py together.
*/}}

{{- /* roost.in_registry (list $ IMAGE): an image that Roost runs, as `imageRegistry` has it. */}}
{{- define "roost.in_registry" -}}
{{- $registry := (index . 0).Values.imageRegistry -}}
{{- ternary (printf "%s/%s" $registry (index . 1)) (index . 1) (not (empty $registry)) -}}
{{- end }}

{{- /* roost.pause_image (list $) */}}
{{- define "roost.pause_image" -}}
{{- $image := (index . 0).Values.placeholder.image -}}
{{- include "roost.in_registry" (list (index . 0) (printf "%s:%s" $image.name $image.tag)) -}}
{{- end }}

{{- /* roost.own_image (list $): Roost's own image. */}}
{{- define "roost.own_image" -}}
{{- include "roost.image_reference" (list (index . 0) (index . 0).Values.image) -}}
{{- end }}

{{- /* roost.lab_image (list $): roost-lab's image. */}}
{{- define "roost.lab_image" -}}
{{- include "roost.image_reference" (list (index . 0) (index . 0).Values.recorder.image) -}}
{{- end }}

{{- /* roost.image_reference (list $ image): an image of Roost's own, by digest where one is given. */}}
{{- define "roost.image_reference" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $reference := printf "%s:%s" $image.name ($image.tag | default $root.Chart.AppVersion) -}}
{{- if $image.digest }}{{ $reference = printf "%s@%s" $image.name $image.digest }}{{ end -}}
{{- include "roost.in_registry" (list $root $reference) -}}
{{- end }}

{{- /* roost.puller_method (list $): `prePuller.method` for this cluster. */}}
{{- define "roost.puller_method" -}}
{{- $root := index . 0 -}}
{{- $method := $root.Values.prePuller.method -}}
{{- if eq $method "auto" -}}
{{- ternary "imageVolume" "noop" (semverCompare ">=1.35-0" $root.Capabilities.KubeVersion.Version) -}}
{{- else -}}
{{- $method -}}
{{- end -}}
{{- end }}

{{- /* roost.minor_reached (list VERSION BY_MINOR): the newest minor that this version has reached, else the oldest. */}}
{{- define "roost.minor_reached" -}}
{{- $version := index . 0 -}}
{{- $reached := "" -}}
{{- $oldest := "" -}}
{{- range $minor, $_ := index . 1 -}}
{{- if or (not $oldest) (semverCompare (printf "<%s.0" $oldest) (printf "%s.0" $minor)) }}{{ $oldest = $minor }}{{ end -}}
{{- if semverCompare (printf ">=%s-0" $minor) $version -}}
{{- if or (not $reached) (semverCompare (printf ">%s.0" $reached) (printf "%s.0" $minor)) }}{{ $reached = $minor }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $reached | default $oldest -}}
{{- end }}

{{- /* roost.minor_for_tag (list $ BY_MINOR TAG): the newest minor that a kube-scheduler with this tag has reached; the cluster's
where the tag says none. */}}
{{- define "roost.minor_for_tag" -}}
{{- $tag := index . 2 -}}
{{- $version := (index . 0).Capabilities.KubeVersion.Version -}}
{{- if regexMatch "^v?[01]\\.[0-9]{2}([^0-9]|$)" $tag }}{{ $version = printf "1.%d.0" (regexFind "[0-9]{2}" $tag | atoi) }}{{ end -}}
{{- include "roost.minor_reached" (list $version (index . 1)) -}}
{{- end }}

{{- /* roost.secret_names (list $ SECRETS): as JSON, the names of pull secrets, which are written as a name or as {name: NAME}. */}}
{{- define "roost.secret_names" -}}
{{- $names := list -}}
{{- range $secret := index . 1 -}}
{{- $names = append $names (kindIs "map" $secret | ternary (get (kindIs "map" $secret | ternary $secret dict) "name") $secret) -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{- /* roost.for_cluster (list $ BY_MINOR): the entry, a string, of that minor. */}}
{{- define "roost.for_cluster" -}}
{{- $minor := include "roost.minor_reached" (list (index . 0).Capabilities.KubeVersion.Version (index . 1)) -}}
{{- if $minor }}{{ index . 1 | dig $minor "" }}{{ end -}}
{{- end }}

{{- /* roost.merge (list MAP MAP …): as JSON, all entries; a later map's wins. Sprig's merge would skip empty ones. */}}
{{- define "roost.merge" -}}
{{- $merged := dict -}}
{{- range $map := . }}{{ range $key, $value := $map }}{{ $_ := set $merged $key $value }}{{ end }}{{ end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.placeholder_sets (list $ SETS DEFAULTS): as JSON, each set with its StatefulSet's name, and with the defaults of
what it doesn't name. */}}
{{- define "roost.placeholder_sets" -}}
{{- $root := index . 0 -}}
{{- $defaults := index . 2 -}}
{{- $found := list -}}
{{- range $set := index . 1 -}}
{{- $one := dict "windows" list "learn" nil -}}
{{- range $key, $value := $defaults }}{{ $_ := set $one $key $value }}{{ end -}}
{{- range $key, $value := $set }}{{ if not (kindIs "invalid" $value) }}{{ $_ := set $one $key $value }}{{ end }}{{ end -}}
{{- $_ := set $one "statefulSet" (include "roost.object_name" (list $root (printf "placeholder-%s" $set.name) 52)) -}}
{{- $found = append $found $one -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* roost.core_pod (list COREPODS COMPONENT): as JSON, `corePods` as one component has it; twin of core_pod. */}}
{{- define "roost.core_pod" -}}
{{- $own := index . 1 -}}
{{- $changes := dict -}}
{{- range $key, $_ := index . 0 }}{{ if hasKey $own $key }}{{ $_ := set $changes $key (get $own $key) }}{{ end }}{{ end -}}
{{- include "roost.laid_over" (list (index . 0) $changes) -}}
{{- end }}

{{- /* roost.laid_over (list BELOW ABOVE): as JSON, two maps put together as Helm does; nil changes nothing. */}}
{{- define "roost.laid_over" -}}
{{- $merged := deepCopy (index . 0) -}}
{{- range $key, $value := index . 1 -}}
{{- if and (kindIs "map" $value) (hasKey $merged $key) (kindIs "map" (get $merged $key)) -}}
{{- $_ := set $merged $key (include "roost.laid_over" (list (get $merged $key) $value) | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end }}

{{- /* roost.refuse_uncertified (list $): stop where the controllers can't keep the webhook's certificates, in the words of
   `roost validate` (generator/checks/certificates.py): else an install would pass whose webhook never starts. */}}
{{- define "roost.refuse_uncertified" -}}
{{- $values := (index . 0).Values -}}
{{- if and $values.enabled (eq $values.admission.mode "webhook") (eq $values.webhook.certificates.mode "self") -}}
{{- if not $values.controllers.enabled -}}
{{- fail "webhook.certificates.mode: self with controllers.enabled: false: the controllers create the certificate, so the webhook gets none. Use mode certManager or secret, or controllers.enabled: true." -}}
{{- else if eq (int64 $values.controllers.replicas) 0 -}}
{{- fail "webhook.certificates.mode: self with controllers.replicas: 0: the controllers create the certificate, so the webhook gets none. Use mode certManager or secret, or controllers.replicas: 2." -}}
{{- else if not $values.clusterResources -}}
{{- fail "webhook.certificates.mode: self with clusterResources: false: nothing can write the caBundle, and without the admission policies an account that can create Secrets can get a token of every account in the namespace. Use mode secret or certManager: whoever creates the webhook configuration supplies the CA bundle." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* roost.refuse_too_many (list $): stop where users may choose so much that no puller is made, in the words of
   `roost validate` (generator/checks/puller.py). */}}
{{- define "roost.refuse_too_many" -}}
{{- $values := (index . 0).Values -}}
{{- if eq (include "roost.uses" (list $values.singleuser $values.prePuller)) "[]" -}}
{{- fail (printf "%s: its images, each with all that its users have, come to more than 8 MiB. Give fewer choices or images, or fewer tolerations, terms, labels and containers to all users." (ternary "singleuser.profileList" "prePuller.extraImages" (not (empty $values.singleuser.profileList)))) -}}
{{- end -}}
{{- end }}
