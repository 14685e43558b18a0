#!/bin/bash
# Kafka's own wrapper turns KAFKA_… into server.properties and formats the storage, as in the official image.
set -euo pipefail
jvm=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*')
CLUSTER_ID=5L6g3nShT-eMCtK--X86sw "${jvm[@]}" kafka.docker.KafkaDockerWrapper setup \
  --default-configs-dir /opt/kafka/defaults --mounted-configs-dir /opt/kafka/mounted --final-configs-dir /opt/kafka/config \
  2>&1 | tee /tmp/setup.log || grep -q 'already formatted' /tmp/setup.log
exec "${jvm[@]}" -Xmx512m kafka.Kafka /opt/kafka/config/server.properties
