#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/user_data.hpp>

#include "job/queue/job_queue.hpp"
#include "job_answers.hpp"
#include "tag_sync_job.hpp"

namespace dtrain::job {
namespace {

constexpr std::size_t kMostOfFile = 16 << 20;

struct HeadAnswer {
  std::string output, error;  // no error: it succeeded
};
// Runs `dtrain` on the head.
HeadAnswer run_dtrain(cluster::ClusterHead& head, std::vector<std::string> words, std::string input = {}) {
  words.insert(words.begin(), fmt::format("{}/bundle/dtrain", cluster::kNodeFolder));
  HeadAnswer answer;
  net::SshCommand command{.argv = std::move(words), .input = std::move(input)};
  command.skip_login_text = true;
  command.on_output = [&answer](std::string_view text) { answer.output += text; };
  command.on_error = [&answer](std::string_view text) { answer.error += text; };
  if (head.session().run(command).ok()) {
    answer.error.clear();
  } else {
    answer.error = answer.error.empty() ? "it failed" : std::string(trim(answer.error));
  }
  return answer;
}
std::string output_of_dtrain(cluster::ClusterHead& head, std::vector<std::string> words, std::string input = {}) {
  HeadAnswer answer = run_dtrain(head, std::move(words), std::move(input));
  if (!answer.error.empty()) throw Error(answer.error);
  return std::move(answer.output);
}

// The jobs of the cluster's queue, as `dtrain jobs list` gives them.
std::vector<Json> jobs_on(cluster::ClusterHead& head) {
  const std::string output = output_of_dtrain(head, {"jobs", "list", "--json"});
  return Json::parse(output, "the queue of the cluster").at("jobs").as_array();
}
bool has_state(const Json& job, JobState state) {
  return job.at("state").as_string() == enum_name(kJobStateNames, state);
}

class RemoteTagSyncJob final : public TagSyncJob {
 public:
  RemoteTagSyncJob(cluster::ClusterHead& head, const std::string& folder) : head_(head), chosen_(folder) {}

  cluster::TagSyncView look(const cluster::Fleet& fleet) override {
    head_.announce(fleet);
    cluster::TagSyncView view;
    view.nodes = head_.ask(list_question());
    view.ready = connected_nodes(view.nodes);
    folder_ = folder_of(view.nodes);
    auto job = job_list();
    if (!job && chosen_.empty()) {
      folder_ = folder_of_queue().value_or(folder_);
      job = job_list();
    }
    if (job) add_host_states(*job, view);
    const JobFolder folder{folder_};
    view.listed = names_in_host_file(read(folder.hosts()));
    view.log = cluster::last_words(read(folder.log()));
    return view;
  }
  Path folder() const override { return folder_; }
  void add(const std::string& host) override { run_or_throw({"hosts", "add", host}); }
  void remove(const std::string& host) override { run_or_throw({"hosts", "remove", host, "--yes"}); }
  StopOutcome stop(const std::string& why, const cluster::Fleet& fleet) override {
    head_.announce(fleet);
    const std::string attached = folder_of(head_.ask(list_question()));
    const auto of_queue = folder_of_queue();
    StopOutcome stop = stop_in(attached, why);
    if (chosen_.empty() && of_queue && attached != of_queue) stop = std::max(stop, stop_in(*of_queue, why));
    return stop;
  }

 private:
  std::string folder_of(const Json& nodes) const {
    return chosen_.empty() ? nodes.at("facts").at("shared_folder").as_string() : chosen_;
  }

  // That of the job that the queue of the cluster runs; nullopt: it runs none.
  std::optional<std::string> folder_of_queue() {
    for (const Json& job : jobs_on(head_)) {
      if (has_state(job, JobState::running)) return job.at("job_dir").as_string();
    }
    return std::nullopt;
  }

  // `dtrain stop` would be the end of a job of the queue, which is to go on later.
  StopOutcome stop_in(const std::string& folder, const std::string& why) {
    folder_ = folder;
    const auto before = coordinator();
    if (!before || before->over()) return StopOutcome::no_job;
    output_of_dtrain(head_, {"agent", "--stop"}, Json::object({{"job_dir", folder}, {"why", why}}).dump());
    const auto after = coordinator();
    return after && after->over() ? stop_outcome(after->exit_code) : StopOutcome::no_job;
  }

  // Of the job in folder_; nullopt: none ever began there.
  std::optional<CoordinatorFile> coordinator() {
    const Path file = JobFolder{folder_}.coordinator();
    const std::string text = folder_.empty() ? std::string() : read(file);
    return text.empty() ? std::nullopt : std::optional(coordinator_in(text, file.string()));
  }

  // The hosts of the job that runs; nullopt: none does.
  std::optional<Json> job_list() {
    if (folder_.empty() || !head_.session().stat(JobFolder{folder_}.coordinator())) return std::nullopt;
    const HeadAnswer answer = run_in_job({"hosts", "list", "--json"});
    return answer.error.empty() ? std::optional(Json::parse(answer.output, "the list of hosts")) : std::nullopt;
  }
  std::string read(const Path& file) {
    return head_.session().stat(file) ? head_.session().read_file(file, kMostOfFile) : std::string();
  }

  HeadAnswer run_in_job(std::vector<std::string> words) {
    words.insert(words.end(), {"--job-dir", folder_});
    return run_dtrain(head_, std::move(words));
  }
  void run_or_throw(std::vector<std::string> words) {
    if (const std::string said = run_in_job(std::move(words)).error; !said.empty()) throw Error(said);
  }

  cluster::ClusterHead& head_;
  const std::string chosen_;  // by the user; empty: the job of the shared folder, else the one that the queue runs
  std::string folder_;
};

}  // namespace

// A job that is cancelled while it runs makes room for one that waits, so those go first.
void cancel_jobs(cluster::ClusterHead& head) {
  const std::vector<Json> jobs = jobs_on(head);
  for (const JobState state : {JobState::waiting, JobState::running}) {
    for (const Json& job : jobs) {
      if (has_state(job, state)) output_of_dtrain(head, {"jobs", "cancel", std::to_string(job.at("job").as_integer())});
    }
  }
}

std::unique_ptr<TagSyncJob> make_remote_job(cluster::ClusterHead& head, const std::string& job_folder) {
  return std::make_unique<RemoteTagSyncJob>(head, job_folder);
}

}  // namespace dtrain::job
