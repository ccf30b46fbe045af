#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr int kPodUser = 65532;  // as in the image of packaging/image.sh
// A worker leaves at the next step, and the last one saves first. What its program may take comes on top of the time
// that the coordinator gives to a worker that leaves (elastic::Policy); then the pod ends.
constexpr std::chrono::seconds kLeastLeaveLimit{100}, kOrderToLeave{30}, kEndOfPod{20};
constexpr std::chrono::seconds kLeastCoordinatorGrace{300};
constexpr int kMostRestarts = 10;

Json texts(const Words& list) {
  Json json = Json::array();
  for (const std::string& text : list) json.push_back(text);
  return json;
}

// Kubernetes replaces $(NAME), and $$ by $, in commands of containers, but not in those of probes and hooks.
Json container_command(const Words& words) {
  Json json = Json::array();
  for (const std::string& word : words) {
    std::string text;
    for (const char letter : word) text += letter == '$' ? "$$" : std::string(1, letter);
    json.push_back(text);
  }
  return json;
}

Json labels(const std::string& name, const char* component = nullptr) {
  Json json = Json::object({{"app.kubernetes.io/name", "dtrain"}, {"app.kubernetes.io/instance", name}});
  if (component) json["app.kubernetes.io/component"] = component;
  return json;
}

Json object(const KubernetesJob& job, const char* version, const char* kind, const char* component = nullptr) {
  Json metadata = Json::object({{"name", job.name}});
  if (!job.space.empty()) metadata["namespace"] = job.space;
  metadata["labels"] = labels(job.name, component);
  return Json::object({{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(metadata)}});
}

std::chrono::seconds leave_limit(const KubernetesJob& job) {
  return std::max(kLeastLeaveLimit, kOrderToLeave + job.time_to_end);
}

std::chrono::seconds worker_grace(const KubernetesJob& job) { return leave_limit(job) + kEndOfPod; }

std::string claim_of(const KubernetesJob& job) { return job.claim.empty() ? job.name : job.claim; }

Json claim(const KubernetesJob& job) {
  Json json = object(job, "v1", "PersistentVolumeClaim");
  Json spec = Json::object({{"accessModes", texts({"ReadWriteMany"})}});
  if (!job.storage_class.empty()) spec["storageClassName"] = job.storage_class;
  spec["resources"] = Json::object({{"requests", Json::object({{"storage", job.storage}})}});
  json["spec"] = std::move(spec);
  return json;
}

std::string name_in(const std::string& variable) { return variable.substr(0, variable.find('=')); }

Json secret(const KubernetesJob& job) {
  Json json = object(job, "v1", "Secret");
  json["metadata"]["name"] = kubernetes_secret(job.name);
  json["type"] = "Opaque";
  Json values = Json::object();
  for (const std::string& variable : job.environment) {
    const std::string name = name_in(variable);
    values[name] = variable.substr(name.size() + 1);
  }
  json["stringData"] = std::move(values);
  return json;
}

// Values that the user gave are in the Secret.
Json variables_of_coordinator(const KubernetesJob& job) {
  std::set<std::string> names;
  for (const std::string& variable : job.environment) names.insert(name_in(variable));
  Json variables = Json::array();
  variables.push_back(Json::object({{"name", kPodVariable}, {"value", "1"}}));
  for (const std::string& name : names) {
    const Json key = Json::object({{"name", kubernetes_secret(job.name)}, {"key", name}});
    variables.push_back(Json::object({{"name", name}, {"valueFrom", Json::object({{"secretKeyRef", key}})}}));
  }
  return variables;
}

Json service(const KubernetesJob& job) {
  Json json = object(job, "v1", "Service");
  json["spec"] = Json::object(
      {{"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", labels(job.name, "worker")}});
  return json;
}

// One pod at a time may be evicted; Kubernetes counts pods that are ready, which are in the job.
Json disruption_budget(const KubernetesJob& job) {
  Json json = object(job, "policy/v1", "PodDisruptionBudget");
  json["spec"] =
      Json::object({{"maxUnavailable", 1}, {"selector", Json::object({{"matchLabels", labels(job.name, "worker")}})}});
  return json;
}

Json volume(const char* name, const char* kind, Json value) {
  return Json::object({{"name", name}, {kind, std::move(value)}});
}

Json mount_at(const char* name, const std::string& path) { return Json::object({{"name", name}, {"mountPath", path}}); }

Json pod_spec(const KubernetesJob& job, Json container, std::chrono::seconds grace, bool has_shared_memory) {
  Json volumes = Json::array({volume("work", "persistentVolumeClaim", Json::object({{"claimName", claim_of(job)}})),
                              volume("tmp", "emptyDir", Json::object())});
  Json mounts = Json::array({mount_at("work", job.mount), mount_at("tmp", "/tmp")});
  if (has_shared_memory) {  // NCCL's
    volumes.push_back(volume("shm", "emptyDir", Json::object({{"medium", "Memory"}})));
    mounts.push_back(mount_at("shm", "/dev/shm"));
  }
  if (!container.find("workingDir")) container["workingDir"] = job.mount;
  Json variables = Json::array({Json::object({{"name", "HOME"}, {"value", "/tmp"}})});
  if (const Json* own = container.find("env")) {
    for (const Json& variable : own->as_array()) variables.push_back(variable);
  }
  container["env"] = std::move(variables);
  container["volumeMounts"] = std::move(mounts);
  container["securityContext"] = Json::object({{"allowPrivilegeEscalation", false},
                                               {"readOnlyRootFilesystem", true},
                                               {"capabilities", Json::object({{"drop", texts({"ALL"})}})}});
  return Json::object(
      {{"automountServiceAccountToken", false},
       {"terminationGracePeriodSeconds", grace.count()},
       {"securityContext", Json::object({{"runAsNonRoot", true},
                                         {"runAsUser", kPodUser},
                                         {"runAsGroup", kPodUser},
                                         {"fsGroup", kPodUser},
                                         {"fsGroupChangePolicy", "OnRootMismatch"},
                                         {"seccompProfile", Json::object({{"type", "RuntimeDefault"}})}})},
       {"containers", Json::array({std::move(container)})},
       {"volumes", std::move(volumes)}});
}

Json pod_template(const KubernetesJob& job, const char* component, Json spec) {
  return Json::object(
      {{"metadata", Json::object({{"labels", labels(job.name, component)}})}, {"spec", std::move(spec)}});
}

Json exec_action(const Words& command) { return Json::object({{"exec", Json::object({{"command", texts(command)}})}}); }

Json probe(const KubernetesJob& job, const char* kind, int failures) {
  Json json = exec_action({"dtrain", "hosts", "join", "--probe", kind, "--job-dir", job.job_folder});
  json["initialDelaySeconds"] = 5;
  json["periodSeconds"] = 10;
  json["timeoutSeconds"] = 10;
  json["failureThreshold"] = failures;
  return json;
}

// Whole processors without a fraction: "2", else thousandths: "500m".
std::string cpus_text(double cpus) {
  const auto thousandths = static_cast<int>(std::lround(cpus * 1000));
  return thousandths % 1000 == 0 ? std::to_string(thousandths / 1000) : fmt::format("{}m", thousandths);
}

// Requests equal limits: dtrain uses as many threads as the limit has processors.
Json worker_resources(const KubernetesJob& job) {
  Json each = Json::object({{"cpu", cpus_text(job.cpus)}, {"memory", job.memory}});
  if (job.gpus > 0) each["nvidia.com/gpu"] = std::to_string(job.gpus);
  return Json::object({{"requests", each}, {"limits", each}});
}

Json workers(const KubernetesJob& job) {
  Json container =
      Json::object({{"name", kContainer},
                    {"image", job.image},
                    {"command", container_command({"dtrain", "hosts", "join", "--job-dir", job.job_folder})},
                    {"workingDir", "/tmp"},  // probes begin there: on the volume they would hang with it
                    {"resources", worker_resources(job)},
                    {"readinessProbe", probe(job, "ready", 1)},
                    {"livenessProbe", probe(job, "alive", 6)},
                    {"lifecycle", Json::object({{"preStop", exec_action({"dtrain", "hosts", "leave", "--limit",
                                                                         std::to_string(leave_limit(job).count()),
                                                                         "--job-dir", job.job_folder})}})}});
  Json json = object(job, "apps/v1", "StatefulSet", "worker");
  json["spec"] =
      Json::object({{"serviceName", job.name},
                    {"replicas", job.workers},
                    {"podManagementPolicy", "Parallel"},
                    {"selector", Json::object({{"matchLabels", labels(job.name, "worker")}})},
                    {"template", pod_template(job, "worker",
                                              pod_spec(job, std::move(container), worker_grace(job), job.gpus > 0))}});
  return json;
}

Json when(const char* action, Json condition) {
  condition["action"] = action;
  return condition;
}

// An eviction counts as no failure; a mistake in the command is not tried again, nor what a command stopped. The
// schemas before 1.31 require onPodConditions in every rule.
Json failure_policy() {
  const Json disrupted = Json::object({{"type", "DisruptionTarget"}, {"status", "True"}});
  Json finals = Json::array();
  for (const int code : kFinalCodes) finals.push_back(Json(code));
  const Json codes = Json::object({{"containerName", kContainer}, {"operator", "In"}, {"values", finals}});
  return Json::object(
      {{"rules",
        Json::array({when("Ignore", Json::object({{"onPodConditions", Json::array({disrupted})}})),
                     when("FailJob", Json::object({{"onExitCodes", codes}, {"onPodConditions", Json::array()}}))})}});
}

Json coordinator(const KubernetesJob& job) {
  Words command = {"dtrain"};
  command.insert(command.end(), job.command.begin(), job.command.end());
  Json container =
      Json::object({{"name", kContainer},
                    {"image", job.image},
                    {"command", container_command(command)},
                    {"resources", Json::object({{"requests", Json::object({{"cpu", "250m"}, {"memory", "512Mi"}})},
                                                {"limits", Json::object({{"cpu", "1"}, {"memory", "2Gi"}})}})}});
  container["env"] = variables_of_coordinator(job);
  Json spec = pod_spec(job, std::move(container), coordinator_grace(job), false);
  spec["restartPolicy"] = "Never";
  Json json = object(job, "batch/v1", "Job", "coordinator");
  json["spec"] = Json::object({{"backoffLimit", kMostRestarts},
                               {"podFailurePolicy", failure_policy()},
                               {"template", pod_template(job, "coordinator", std::move(spec))}});
  return json;
}

}  // namespace

std::vector<Json> kubernetes_objects(const KubernetesJob& job) {
  std::vector<Json> objects;
  if (job.claim.empty()) objects.push_back(claim(job));
  if (!job.environment.empty()) objects.push_back(secret(job));
  objects.push_back(service(job));
  objects.push_back(disruption_budget(job));
  objects.push_back(workers(job));
  objects.push_back(coordinator(job));
  return objects;
}

std::chrono::seconds coordinator_grace(const KubernetesJob& job) {
  return std::max(kLeastCoordinatorGrace, worker_grace(job));
}

std::string kubernetes_secret(const std::string& name) { return name + "-env"; }

std::string kubernetes_selector(const std::string& name, const std::string& component) {
  const Json chosen = labels(name, component.empty() ? nullptr : component.c_str());
  std::string text;
  for (const auto& [key, value] : chosen.as_object())
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.as_string());
  return text;
}

}  // namespace dtrain::launcher
