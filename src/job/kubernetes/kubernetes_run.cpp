#include "kubernetes_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/launcher/kubectl.hpp>
#include <dtrain/launcher/kubernetes.hpp>

#include "cluster_view.hpp"
#include "pod_command.hpp"
#include "pod_logs.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using KubeClock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr auto kPollSignals = 100ms;
constexpr auto kViewInterval = 2s;
// A view of the cluster may be older than what was applied.
constexpr auto kLateness = 30s;
// From the end of `dtrain stop` in a pod to the end of the container and the pod's status that says so.
constexpr auto kStatusLag = 15s;
// From the deletion of the Job to the end of its pod, beside the grace that the pod has.
constexpr auto kLatestEnd = 30s;
// From the end of the training to the end of its log.
constexpr auto kLastLogTime = 20s;
// The API server may be away for so long, as during an upgrade.
constexpr auto kApiPatience = 120s;

Words names_of(const Words& variables) {
  Words names;
  for (const std::string& variable : variables) names.push_back(variable.substr(0, variable.find('=')));
  return names;
}

launcher::KubernetesJob kubernetes_job(const config::JobOptions& options, std::string job_folder, Words command,
                                       config::Seconds time_to_end) {
  const config::KubernetesOptions& kube = options.kubernetes;
  return {.name = kube.name,
          .space = kube.space,
          .image = kube.image,
          .command = std::move(command),
          .environment = variables_of_secret(options.environment),
          .workers = options.hosts,
          .cpus = kube.cpus,
          .memory = kube.memory,
          .gpus = kube.gpus,
          .claim = kube.claim,
          .storage = kube.storage,
          .storage_class = kube.storage_class,
          .mount = config::kPodFolder,
          .job_folder = std::move(job_folder),
          .time_to_end = std::chrono::ceil<std::chrono::seconds>(time_to_end)};
}

// What `kubectl delete` removes: everything but the claim. Without variables the user may have no right to Secrets.
std::string removed_kinds(const launcher::KubernetesJob& job) {
  std::string kinds = "job,statefulset,service,poddisruptionbudget";
  if (!job.environment.empty()) kinds += ",secret";
  return kinds;
}

// After these the Job makes no next pod, also where containers beside it keep the pod alive.
bool is_last(const std::optional<int>& code) {
  return code && (code == 0 || std::ranges::find(launcher::kFinalCodes, *code) != launcher::kFinalCodes.end());
}

// Whether a command stopped the training in the pod; outcome() has the code that its user gets.
bool is_of_stop(const std::optional<int>& code) {
  constexpr std::array<int, 2> kOfStops = {launcher::kStoppedInPod, launcher::kStoppedUnsavedInPod};
  return code && std::ranges::find(kOfStops, *code) != kOfStops.end();
}

// In kubectl's words; trying again does not help.
bool is_forbidden(const Error& error) { return std::string_view(error.what()).find("orbidden") != std::string::npos; }

std::string code_text(int code) { return fmt::format("exit code {}", code); }

// Everything runs on one thread, but for the reading of logs (PodLogs).
class KubernetesRun {
 public:
  KubernetesRun(const config::KubernetesOptions& options, const launcher::KubernetesJob& job, Reporter& reporter)
      : name_(options.name),
        space_(options.space),
        job_folder_(job.job_folder),
        claim_(options.claim.empty() ? options.name : options.claim),
        kinds_(removed_kinds(job)),
        longest_end_(launcher::coordinator_grace(job) + kLatestEnd),
        reporter_(reporter),
        kubectl_(environment("PATH").value_or(""), options.context, options.space),
        logs_(kubectl_, reporter) {}

  void apply(const std::string& manifests) {
    const ClusterView before = view();
    former_uid_ = before.uid;
    if (before.job == JobPhase::active) {
      throw Error(fmt::format("job/{}: a training of this name runs already", name_),
                  fmt::format("choose another --kube-name, or follow it with `{}`", shown(logs())));
    }
    if (before.job != JobPhase::missing) kubectl_.call({"delete", "job", name_});
    make_objects(manifests);
    applied_ = KubeClock::now();
  }

  // A signal that came meanwhile is the user's answer to what was made.
  void refuse_if_stopped() {
    if (stop_signals() == 0) return;
    remove_objects();
    throw Interrupted(stop_signal(), "stopped before the training ran", "the same command begins it");
  }

  ExitCode answer_applied() const {
    if (reporter_.json()) {
      reporter_.answer_json(Json::object({{"schema", "dtrain.kubernetes/1"}, {"job", name_}, {"namespace", space_}}));
      return ExitCode::ok;
    }
    reporter_.answer(fmt::format("the job runs as job/{}", name_));
    for (const Words& words : {logs(), Words{"scale", "statefulset/" + name_, "--replicas", "3"}, deletion()})
      reporter_.answer("  " + shown(words));
    return ExitCode::ok;
  }

  ExitCode follow() {
    for (;; std::this_thread::sleep_for(kPollSignals)) {
      hear_signals();
      const auto now = KubeClock::now();
      if (now < next_view_) continue;
      next_view_ = now + kViewInterval;
      if (!look()) continue;
      if (const auto code = outcome()) {
        remove_objects();
        return *code;
      }
      mend_stop();
    }
  }

 private:
  // kubectl makes every object that is not refused.
  void make_objects(const std::string& manifests) {
    try {
      for (const std::string& line : split(kubectl_.call({"apply", "-f", "-"}, manifests), '\n')) {
        if (!trim(line).empty()) reporter_.note(line);
      }
    } catch (const RemoteError&) {
      remove_objects();
      throw;
    }
  }

  ClusterView view() const {
    return cluster_view(kubectl_.get({"job,pod", "-l", launcher::kubernetes_selector(name_)}));
  }

  // False: the cluster does not answer now, or shows what was there before.
  bool look() {
    try {
      ClusterView now = view();
      answered_ = KubeClock::now();
      complained_ = false;
      const bool is_former = now.job != JobPhase::missing && now.uid == former_uid_;
      const bool is_early = now.job == JobPhase::missing && uid_.empty() && answered_ - applied_ < kLateness;
      if (is_former || is_early) return false;
      if (uid_.empty()) uid_ = now.uid;
      if (now.job != JobPhase::missing) job_seen_ = answered_;
      std::erase_if(now.pods, [&](const PodView& pod) { return pod.coordinates && pod.owner != uid_; });
      view_ = std::move(now);
    } catch (const Error& error) {
      if (KubeClock::now() - answered_ > kApiPatience) {
        throw RemoteError(error.what(),
                          fmt::format("the training goes on and its pods stay: `{}` shows it, `{}` ends it",
                                      shown(logs()), shown(deletion())));
      }
      if (!std::exchange(complained_, true)) reporter_.warn(error.what());
      return false;
    }
    say_troubles();
    follow_coordinator();
    return true;
  }

  void say_troubles() {
    for (const PodView& pod : view_.pods) {
      if (!pod.trouble.empty() && said_.insert(pod.name + pod.trouble).second)
        reporter_.note(fmt::format("pod/{}: {}", pod.name, pod.trouble));
    }
  }

  // Pods of the Job one after the other, each to the end of its output.
  void follow_coordinator() {
    for (const PodView& pod : view_.pods) {
      if (!pod.coordinates || (!pod.runs && !pod.is_over) || followed_.contains(pod.name)) continue;
      logs_.follow(pod.name);
      if (logs_.pod() != pod.name) break;
      followed_.insert(pod.name);
    }
    const auto is_followed = [&](const PodView& pod) { return pod.name == logs_.pod(); };
    const auto pod = std::ranges::find_if(view_.pods, is_followed);
    const bool is_over = pod == view_.pods.end() || pod->is_over;
    if (is_over && pod != view_.pods.end() && pod->exit_code && reported_.insert(pod->name).second &&
        *pod->exit_code != 0 && !is_of_stop(pod->exit_code))
      reporter_.note(fmt::format("pod/{} ended with {}", pod->name, code_text(*pod->exit_code)));
    logs_.look(is_over);
  }

  // The pod that was asked to end the training, or else the newest one. Where the Job has made the next pod before the
  // end of the asked one was seen, the next one would train on.
  const PodView* coordinator() const { return asked_pod_.empty() ? view_.coordinator() : view_.find(asked_pod_); }

  // A pod whose Job was deleted still saves, unless its node is dead. One that ended beside containers of its cluster
  // leaves the Job active.
  bool training_ended() const {
    const PodView* pod = coordinator();
    const bool pod_ended = !pod || pod->is_over;
    if (view_.job == JobPhase::complete || view_.job == JobPhase::failed || (pod && is_last(pod->exit_code)))
      return true;
    if (view_.job == JobPhase::missing && KubeClock::now() - job_seen_ > longest_end_) return true;
    return pod_ended && (view_.job == JobPhase::missing || !asked_pod_.empty());
  }

  // The end of the training, once its output has been shown.
  std::optional<ExitCode> outcome() {
    if (!training_ended()) return std::nullopt;
    const PodView* last = coordinator();
    if (first_end_ == KubeClock::time_point{}) first_end_ = KubeClock::now();
    const bool waits_for_log = !logs_.pod().empty() && !logs_.is_complete();
    if (waits_for_log && KubeClock::now() - first_end_ < kLastLogTime) return std::nullopt;
    if (view_.job == JobPhase::missing && asked_ == 0 && !(last && last->exit_code == 0)) {
      remove_objects();
      throw Error(fmt::format("job/{} was deleted", name_),
                  "the same command continues from the last checkpoint of --model-prefix");
    }
    if (last && is_of_stop(last->exit_code)) {
      return *last->exit_code == launcher::kStoppedInPod ? ExitCode::resumable : ExitCode::failed;
    }
    if (view_.job == JobPhase::failed && !view_.why.empty())
      reporter_.warn(fmt::format("job/{}: {}", name_, view_.why));
    if (view_.job == JobPhase::complete) return ExitCode::ok;
    if (last && last->exit_code) return static_cast<ExitCode>(*last->exit_code);
    if (asked_ == 0) return ExitCode::failed;
    reporter_.warn(
        fmt::format("pod/{} was gone before its exit code was seen: `dtrain inspect` says what it saved", asked_pod_));
    return ExitCode::resumable;
  }

  void hear_signals() {
    reap_stop();
    const int heard = stop_signals();
    if (heard == asked_) return;
    asked_ = heard;
    const PodView* pod = view_.coordinator();
    if (!pod || !pod->runs) {
      remove_objects();
      throw Interrupted(stop_signal(), "stopped while no pod of the Job ran",
                        "the same command continues from the newest checkpoint, where there is one");
    }
    reporter_.note(heard > 1 ? "Ends the training at once"
                             : "Asks the training to save a checkpoint and to end; a second signal ends it at once");
    if (asked_pod_.empty()) asked_pod_ = pod->name;
    Words words = {"exec",      asked_pod_, std::string("--container=") + launcher::kContainer, "--", "dtrain", "stop",
                   "--job-dir", job_folder_};
    if (heard > 1) words.emplace_back("--now");
    Spawn child = spawn_of(kubectl_.command(words));
    child.environment = own_environment();
    child.error = STDERR_FILENO;
    stops_.push_back(spawn(child));
  }

  void reap_stop() {
    std::erase_if(stops_, [this](pid_t process) {
      if (!has_ended(process)) return false;
      wait_for_end(process);
      stop_ended_ = KubeClock::now();
      return true;
    });
  }

  // A `dtrain stop` that fails may have been killed because its container ended, which is what it asked for; one that
  // ends well may have met the record of an earlier training, while this one waits for its hosts. Deleting the Job
  // makes Kubernetes ask the pod itself.
  void mend_stop() {
    if (!stop_ended_ || view_.job != JobPhase::active || KubeClock::now() - *stop_ended_ < kStatusLag) return;
    if (training_ended()) return;
    reporter_.warn("`dtrain stop` did not end the pod; the Job is deleted, so that Kubernetes ends it");
    if (delete_with_patience("job")) stop_ended_.reset();
  }

  Words logs() const { return {"logs", "-f", "job/" + name_}; }
  Words deletion() const { return {"delete", kinds_, "-l", launcher::kubernetes_selector(name_)}; }

  std::string shown(const Words& words) const { return launcher::shown_command(kubectl_.command(words)); }

  void remove_objects() {
    if (!delete_with_patience(kinds_)) return;
    reporter_.note(
        fmt::format("Deleted the pods of {}; pvc/{} keeps data, checkpoints and the job folder", name_, claim_));
  }

  // False, with a warning: they are still there. A further signal ends the tries.
  bool delete_with_patience(const std::string& kinds) {
    const auto end = KubeClock::now() + kApiPatience;
    const int signals = stop_signals();
    for (;; std::this_thread::sleep_for(kViewInterval)) {
      try {
        kubectl_.call({"delete", kinds, "-l", launcher::kubernetes_selector(name_)});
        return true;
      } catch (const Error& error) {
        const bool may_pass = !is_forbidden(error) && KubeClock::now() < end;
        if (may_pass && stop_signals() == signals) {
          if (!std::exchange(complained_, true)) reporter_.warn(error.what());
          continue;
        }
        reporter_.warn(
            fmt::format("{}; the pods of {} may still run: `{}` removes them", error.what(), name_, shown(deletion())));
        return false;
      }
    }
  }

  const std::string name_, space_, job_folder_, claim_, kinds_;
  const std::chrono::seconds longest_end_;  // from the deletion of the Job to the end of its pod
  Reporter& reporter_;
  const launcher::Kubectl kubectl_;
  PodLogs logs_;
  ClusterView view_;
  std::string former_uid_, uid_;  // of a Job of this name that had ended before, and of the one that was applied
  KubeClock::time_point next_view_{}, applied_{}, answered_ = KubeClock::now(), first_end_{}, job_seen_{};
  bool complained_ = false;
  std::set<std::string> said_, followed_, reported_;
  int asked_ = 0;                                    // stop signals that were passed on
  std::string asked_pod_;                            // that the first of them was passed on to
  std::vector<pid_t> stops_;                         // processes that pass them on
  std::optional<KubeClock::time_point> stop_ended_;  // the end of one of them
};

ExitCode print_manifests(const launcher::KubernetesJob& job, Reporter& reporter) {
  std::vector<Json> objects = launcher::kubernetes_objects(job);
  std::erase_if(objects, [](const Json& object) { return object.at("kind").as_string() == "Secret"; });
  if (!job.environment.empty()) {
    reporter.note(
        fmt::format("The Secret {0} with the values of {1} is not printed. Make it first: "
                    "`kubectl create secret generic {0}{2} --from-env-file=FILE`, where FILE has lines NAME=VALUE",
                    launcher::kubernetes_secret(job.name), join(names_of(job.environment), ", "),
                    job.space.empty() ? "" : " -n " + job.space));
  }
  const std::string text = launcher::to_yaml(objects);
  reporter.answer(text.substr(0, text.size() - 1));
  return ExitCode::ok;
}

}  // namespace

ExitCode run_on_kubernetes(const config::JobOptions& options, const std::string& job_folder,
                           const std::vector<std::string>& command, Reporter& reporter, config::Seconds time_to_end) {
  const launcher::KubernetesJob job = kubernetes_job(options, job_folder, command, time_to_end);
  if (options.kubernetes.print) return print_manifests(job, reporter);
  watch_stop_signals(2);
  KubernetesRun run(options.kubernetes, job, reporter);
  run.apply(launcher::to_yaml(launcher::kubernetes_objects(job)));
  if (!options.detach) return run.follow();
  run.refuse_if_stopped();
  return run.answer_applied();
}

}  // namespace dtrain::job
