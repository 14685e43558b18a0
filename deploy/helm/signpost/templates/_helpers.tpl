{{- define "signpost.name" -}}
{{- if contains "signpost" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-signpost" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{/* Labels that select the pods of a component; they can't be changed. */}}
{{- define "signpost.selector" -}}
app.kubernetes.io/name: signpost
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "signpost.labels" -}}
{{ include "signpost.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "signpost.image" -}}
{{- $image := .root.Values.image -}}
image: {{ printf "%s:%s" $image.repository (.values.tag | default $image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{- define "signpost.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "signpost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* What the pods of all components have: where they run, who they are, and how long they may take to stop. */}}
{{- define "signpost.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext: {{ include "signpost.podSecurity" . | nindent 2 }}
{{- with .values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "signpost.selector" $ | nindent 8 }}
{{- end }}
{{- end }}

{{/*
With an autoscaler, the number of pods that run: without the field Kubernetes would scale down to one when autoscaling is turned
on. `helm template` finds none and omits it.
*/}}
{{- define "signpost.replicas" -}}
{{- if not .values.autoscaling.enabled -}}
replicas: {{ .values.replicas }}
{{- else -}}
{{- $name := printf "%s-%s" (include "signpost.name" .root) .component -}}
{{- with lookup "apps/v1" .kind .root.Release.Namespace $name -}}
replicas: {{ int .spec.replicas }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "signpost.annotations" -}}
{{- $metrics := .root.Values.metrics -}}
{{- if and $metrics.port (not $metrics.podMonitor.enabled) }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ $metrics.port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- with .values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Variables of cores and gateways. */}}
{{- define "signpost.env" -}}
{{- $values := .root.Values -}}
- { name: LISTEN_HOST, value: {{ $values.listenHost | quote }} }
- { name: PUBLIC_URL, value: {{ $values.publicUrl | quote }} }
- { name: DATA_DIR, value: /data }
{{- with $values.kafka.brokers }}
- { name: KAFKA_BROKERS, value: {{ join "," . | quote }} }
{{- end }}
{{- include "signpost.ownEnv" . | nindent 0 }}
{{- end }}

{{/* Variables of every program; secrets are files. */}}
{{- define "signpost.ownEnv" -}}
{{- with include "signpost.portOfMetrics" . }}
- { name: METRICS_PORT, value: {{ . | quote }} }
{{- end }}
{{- range .secret.keys }}
- { name: {{ . }}_FILE, value: /secrets/{{ . }} }
{{- end }}
{{- range $name, $value := .values.env }}
{{- /* Helm reads numbers as floats, and would print 1000000 as 1e+06. */}}
- { name: {{ $name }}, value: {{ kindIs "float64" $value | ternary (int64 $value) $value | quote }} }
{{- end }}
{{- end }}

{{- define "signpost.mounts" -}}
- { name: data, mountPath: /data }
{{ include "signpost.commonMounts" . }}
{{- end }}

{{/* All mounts but `data`. */}}
{{- define "signpost.commonMounts" -}}
- { name: secrets, mountPath: /secrets, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- if .Values.configSecret }}
- { name: config, mountPath: /config, readOnly: true }
{{- end }}
{{- end }}

{{/* All volumes but `data`. */}}
{{- define "signpost.volumes" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .secret.name }}
          items:
            {{- range .secret.keys }}
            - { key: {{ . }}, path: {{ . }} }
            {{- end }}
      {{- with .secret.filesSecret }}
      - secret: { name: {{ . }} }
      {{- end }}
- { name: tmp, emptyDir: { sizeLimit: 256Mi } }
{{- with .root.Values.configSecret }}
- name: config
  secret: { secretName: {{ . }}, defaultMode: 0440 }
{{- end }}
{{- end }}

{{/* METRICS_PORT of a component; none if empty. Workers listen on no other port, so their probes need it in any case. */}}
{{- define "signpost.portOfMetrics" -}}
{{- with .root.Values.metrics.port | default (eq .component "worker" | ternary 9464 0) }}{{ int . }}{{ end -}}
{{- end }}

{{- define "signpost.metricsPort" -}}
{{- with include "signpost.portOfMetrics" . }}
- { name: metrics, containerPort: {{ . }} }
{{- end }}
{{- end }}
