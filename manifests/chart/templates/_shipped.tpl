{{/*
The objects are those of ../base and ../components, which are in files/: what kustomize installs and what this chart
installs has one source. These templates read them, and put in what the values and the release say.
*/}}

{{- define "bayplan.labels" -}}
app.kubernetes.io/name: bayplan
app.kubernetes.io/component: scheduler
app.kubernetes.io/part-of: bayplan
{{- end }}

{{- define "bayplan.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The text of a file: dict "root" $ "file" "base/config.yaml". */}}
{{- define "bayplan.file" -}}
{{- required (printf "the chart lacks files/%s" .file) (.root.Files.Get (printf "files/%s" .file)) }}
{{- end }}

{{/* The configuration: the value, or the file of the component that is switched on. */}}
{{- define "bayplan.configuration" -}}
{{- $file := "base/config.yaml" }}
{{- if .Values.preemption.enabled }}{{ $file = "components/preemption/config.yaml" }}{{ end }}
{{- if .Values.carefulPreemption.enabled }}{{ $file = "components/careful-preemption/config.yaml" }}{{ end }}
{{- $shipped := include "bayplan.file" (dict "root" . "file" $file) }}
{{- if .Values.defaultSpreading.enabled }}{{ $shipped = replace "defaultingType: List" "defaultingType: System" $shipped }}{{ end }}
{{- .Values.config | default $shipped }}
{{- end }}

{{/*
A checksum of what running replicas do not take over of a changed configuration, or not always: plugins may look up
kinds that nobody watches yet, and so does PodTopologySpread by its defaultingType.
*/}}
{{- define "bayplan.restartsFor" -}}
{{- $configuration := fromYaml (include "bayplan.configuration" .) }}
{{- $parts := list (pick $configuration "leaderElection" "clientConnection" "enableProfiling") }}
{{- if kindIs "slice" $configuration.profiles }}
{{- range $configuration.profiles }}
{{- if kindIs "map" . }}
{{- $parts = append $parts (pick . "schedulerName" "plugins") }}
{{- $parts = append $parts (include "bayplan.defaultingType" .pluginConfig) }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $parts | sha256sum }}
{{- end }}

{{/* What PodTopologySpread's arguments say of default constraints, from the `pluginConfig` of a profile. */}}
{{- define "bayplan.defaultingType" -}}
{{- $found := "System" }}
{{- if kindIs "slice" . }}
{{- range . }}
{{- if kindIs "map" . }}
{{- if and (eq (toString .name) "PodTopologySpread") (kindIs "map" .args) }}{{ $found = .args.defaultingType | default $found }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- $found }}
{{- end }}

{{/*
The objects of a file, as they are in this release: dict "root" $ "file" "base/rbac.yaml". One of `patches` that is of the
same kind and name takes an object's place, or takes it away, by `$patch: delete`.
*/}}
{{- define "bayplan.shipped" -}}
{{- range $document := splitList "\n---\n" (include "bayplan.file" .) }}
{{- $object := fromYaml $document }}
{{- range $patch := $.patches }}
{{- if and (eq $patch.kind $object.kind) (eq $patch.metadata.name $object.metadata.name) }}{{ $object = $patch }}{{ end }}
{{- end }}
{{- if not (hasKey $object "$patch") }}
{{ include "bayplan.object" (dict "root" $.root "object" $object) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Has an object of a shadow, and what it names, be called "-shadow" at the end, as by kustomize's nameSuffix. */}}
{{- define "bayplan.renamed" -}}
{{- $named := list .metadata }}
{{- with .roleRef }}{{ $named = append $named . }}{{ end }}
{{- range .subjects }}{{ $named = append $named . }}{{ end }}
{{- if eq .kind "Deployment" }}
{{- $pods := .spec.template.spec }}
{{- $_ := set $pods "serviceAccountName" (printf "%s-shadow" $pods.serviceAccountName) }}
{{- range $pods.volumes }}{{ with .configMap }}{{ $named = append $named . }}{{ end }}{{ end }}
{{- end }}
{{- range $named }}{{ $_ := set . "name" (printf "%s-shadow" .name) }}{{ end }}
{{- end }}

{{/* One object with labels, and the namespace of the release wherever it names one: dict "root" $ "object" dict. */}}
{{- define "bayplan.object" -}}
{{- $namespace := .root.Release.Namespace }}
{{- $object := .object }}
{{- $metadata := $object.metadata }}
{{- if .root.Values.shadow.enabled }}{{ include "bayplan.renamed" $object }}{{ end }}
{{- $_ := set $metadata "labels" (merge (fromYaml (include "bayplan.labels" .root)) ($metadata.labels | default dict)) }}
{{- $clusterScoped := list "ClusterRole" "ClusterRoleBinding" "FlowSchema" "PriorityLevelConfiguration" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" }}
{{- if not (has $object.kind $clusterScoped) }}
{{- $_ := set $metadata "namespace" $namespace }}
{{- end }}
{{- /* What is shipped names the namespace of others' accounts only. */}}
{{- range $object.subjects }}
{{- if not (hasKey . "namespace") }}{{ $_ := set . "namespace" $namespace }}{{ end }}
{{- end }}
{{- if eq $object.kind "FlowSchema" }}
{{- range $object.spec.rules }}
{{- range .subjects }}{{ $_ := set .serviceAccount "namespace" $namespace }}{{ end }}
{{- end }}
{{- end }}
{{- if hasKey ($object.spec | default dict) "paramRef" }}
{{- $_ := set $object.spec.paramRef "namespace" $namespace }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
