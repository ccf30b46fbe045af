#include "cluster_tag_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/user_data.hpp>

#include "job/spec/job_client.hpp"
#include "job/spec/process_facts.hpp"
#include "job/spec/wait_for_stop.hpp"
#include "job_queue.hpp"

namespace dtrain::job {
namespace {

using Kind = cluster::TagSyncStep::Kind;
constexpr std::chrono::seconds kDeadline{30};
constexpr std::chrono::seconds kTagLook{1};
constexpr std::size_t kMostLog = 16 << 20;

Json question(const char* ask) { return Json::object({{"ask", ask}}); }

std::set<std::string> connected_in(const Json& list) {
  std::set<std::string> found;
  for (const Json& node : list.at("nodes").as_array()) {
    if (node.at("connected").as_bool()) found.insert(node.at("address").as_string());
  }
  return found;
}

// Reads the host file, because hosts that left stay in the list of the job for a while.
std::set<std::string> listed_in(const std::string& host_file) {
  std::set<std::string> found;
  for (const elastic::HostLine& line : elastic::parse_host_file(host_file).hosts) found.insert(line.name);
  return found;
}

// Of the document that `dtrain hosts list` gives.
void add_states(const Json& job, cluster::TagSyncView& view) {
  view.job_runs = true;
  view.elastic = job.at("elastic").as_bool();
  for (const Json& host : job.at("hosts").as_array()) {
    view.states[host.at("name").as_string()] = host.at("state").as_string();
  }
}

std::set<std::string> running_in(const cluster::Fleet& fleet) {
  std::set<std::string> found;
  for (const cluster::Node& node : fleet.nodes) {
    if (node.state == "running") found.insert(node.private_ip);
  }
  return found;
}

TagSyncJob::Stop stop_of(ExitCode of_job) {
  return of_job == ExitCode::resumable ? TagSyncJob::Stop::resumable : TagSyncJob::Stop::unsaved;
}

// The job that a user runs in the shared folder, or the one that the queue runs: one that takes no --job-dir may be
// either.
class LocalTagSyncJob final : public TagSyncJob {
 public:
  LocalTagSyncJob(const Path& folder, const std::string& cluster)
      : chosen_(folder), registry_(cluster::registry_of(cluster)) {
    if (chosen_.empty() && registry_) queue_.emplace(queue_of_cluster(registry_->shared_folder, registry_->cluster));
  }

  cluster::TagSyncView look(const cluster::Fleet& fleet) override {
    cluster::TagSyncView view;
    if (registry_) view.nodes = registered(fleet);
    view.ready = registry_ ? connected_in(view.nodes) : running_in(fleet);
    if (const auto job = find_job()) add_states(*job, view);
    if (file_exists(folder_.hosts())) view.listed = listed_in(read_file(folder_.hosts()));
    if (file_exists(folder_.log())) view.log = cluster::last_words(read_file(folder_.log()));
    return view;
  }
  Path folder() const override { return folder_.path; }
  void add(const std::string& host) override { edit_hosts(folder_, {.add = {host}}); }
  void remove(const std::string& host) override { edit_hosts(folder_, {.remove = {host}}); }
  Stop stop(const std::string& why, const cluster::Fleet& fleet) override {
    announce(fleet);
    Stop stop = Stop::no_job;
    for (const JobFolder& folder : folders()) stop = std::max(stop, stop_job_in(folder, why));
    return stop;
  }

 private:
  // Where a job of the cluster may run.
  std::vector<JobFolder> folders() {
    if (!chosen_.empty()) return {{chosen_}};
    std::vector<JobFolder> found{{registry_ && !registry_->shared_folder.empty() ? registry_->shared_folder : "."}};
    if (!queue_) return found;
    for (const QueuedJob& job : queue_->read()) {
      if (job.spec && job.record.state == JobState::running) found.push_back(job.job_folder());
    }
    return found;
  }

  // The hosts of the job that runs, which is then that of folder_; nullopt: none does, or it has just ended.
  std::optional<Json> find_job() {
    const std::vector<JobFolder> all = folders();
    for (const JobFolder& folder : all) {
      folder_ = folder;
      if (auto job = job_list()) return job;
    }
    folder_ = all.back();  // that of the queue: its job may be about to begin, or to go on
    return std::nullopt;
  }
  std::optional<Json> job_list() const {
    const auto file = read_coordinator(folder_);
    if (!file || file->over() || !answers(*file)) return std::nullopt;
    try {
      return ask_coordinator(folder_, question("list"));
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // A head that is away holds no queue, and must not keep the job from being saved.
  void announce(const cluster::Fleet& fleet) const {
    try {
      if (registry_) launcher::ask_registry(*registry_, cluster::announcement(fleet), kDeadline);
    } catch (const RemoteError&) {
    }
  }

  Json registered(const cluster::Fleet& fleet) const {
    launcher::ask_registry(*registry_, cluster::announcement(fleet), kDeadline);
    return launcher::ask_registry(*registry_, question("list"), kDeadline);
  }

  const Path chosen_;  // by the user; empty: neither
  const std::optional<launcher::AgentRegistry> registry_;
  std::optional<JobQueue> queue_;
  JobFolder folder_{};
};

struct Answer {
  std::string output, error;  // no error: it succeeded
};
// Runs `dtrain` on the head.
Answer run_dtrain(cluster::ClusterHead& head, std::vector<std::string> words, std::string input = {}) {
  words.insert(words.begin(), fmt::format("{}/bundle/dtrain", cluster::kNodeFolder));
  Answer answer;
  net::SshCommand command{.argv = std::move(words), .input = std::move(input)};
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
  Answer answer = run_dtrain(head, std::move(words), std::move(input));
  if (!answer.error.empty()) throw Error(answer.error);
  return std::move(answer.output);
}

// The jobs of the cluster's queue, as `dtrain jobs list` gives them.
std::vector<Json> jobs_on(cluster::ClusterHead& head) {
  const std::string output = output_of_dtrain(head, {"jobs", "list", "--json"});
  return Json::parse(output, "the queue of the cluster").at("jobs").as_array();
}
bool is_in(const Json& job, JobState state) { return job.at("state").as_string() == enum_name(kJobStateNames, state); }

class RemoteTagSyncJob final : public TagSyncJob {
 public:
  RemoteTagSyncJob(cluster::ClusterHead& head, const std::string& folder) : head_(head), chosen_(folder) {}

  cluster::TagSyncView look(const cluster::Fleet& fleet) override {
    head_.announce(fleet);
    cluster::TagSyncView view;
    view.nodes = head_.ask(question("list"));
    view.ready = connected_in(view.nodes);
    folder_ = folder_of(view.nodes);
    auto job = job_list();
    if (!job && chosen_.empty()) {
      folder_ = folder_of_queue().value_or(folder_);
      job = job_list();
    }
    if (job) add_states(*job, view);
    const JobFolder folder{folder_};
    view.listed = listed_in(read(folder.hosts()));
    view.log = cluster::last_words(read(folder.log()));
    return view;
  }
  Path folder() const override { return folder_; }
  void add(const std::string& host) override { run_or_throw({"hosts", "add", host}); }
  void remove(const std::string& host) override { run_or_throw({"hosts", "remove", host, "--yes"}); }
  Stop stop(const std::string& why, const cluster::Fleet& fleet) override {
    head_.announce(fleet);
    const std::string attached = folder_of(head_.ask(question("list")));
    const auto of_queue = folder_of_queue();
    Stop stop = stop_in(attached, why);
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
      if (is_in(job, JobState::running)) return job.at("job_dir").as_string();
    }
    return std::nullopt;
  }

  // `dtrain stop` would be the end of a job of the queue, which is to go on later.
  Stop stop_in(const std::string& folder, const std::string& why) {
    folder_ = folder;
    const auto before = coordinator();
    if (!before || before->over()) return Stop::no_job;
    output_of_dtrain(head_, {"agent", "--stop"}, Json::object({{"job_dir", folder}, {"why", why}}).dump());
    const auto after = coordinator();
    return after && after->over() ? stop_of(after->exit_code) : Stop::no_job;
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
    const Answer answer = run_in_job({"hosts", "list", "--json"});
    return answer.error.empty() ? std::optional(Json::parse(answer.output, "the list of hosts")) : std::nullopt;
  }
  std::string read(const Path& file) {
    return head_.session().stat(file) ? head_.session().read_file(file, kMostLog) : std::string();
  }

  Answer run_in_job(std::vector<std::string> words) {
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

void set_status(net::AwsCalls& aws, const std::string& instance_id, const std::string& status) {
  aws.query(net::kEc2, "CreateTags",
            {{"ResourceId.1", instance_id}, {"Tag.1.Key", cluster::tag::kStatus}, {"Tag.1.Value", status}});
}

void do_step(net::AwsCalls& aws, const cluster::TagSyncStep& step, TagSyncJob& job) {
  switch (step.kind) {
    case Kind::add_host:
      return job.add(step.host);
    case Kind::remove_host:
      return job.remove(step.host);
    case Kind::set_status:
      return set_status(aws, step.instance_id, step.status);
    case Kind::end_instance:
      return cluster::end_instances({.aws = aws, .wait = false}, {step.instance_id});
  }
}

std::string words_of(const cluster::TagSyncStep& step) {
  switch (step.kind) {
    case Kind::add_host:
      return fmt::format("{} ({}) joins the job", step.host, step.instance_id);
    case Kind::remove_host:
      return fmt::format("{} ({}) leaves the job", step.host, step.instance_id);
    case Kind::set_status:
      return fmt::format("{} ({}): {}", step.host, step.instance_id, step.status);
    case Kind::end_instance:
      return fmt::format("{} ({}) is ended", step.host, step.instance_id);
  }
  return {};
}

}  // namespace

TagSyncJob::Stop stop_job_in(const JobFolder& folder, const std::string& why) {
  const auto file = read_coordinator(folder);
  if (!file || file->over()) return TagSyncJob::Stop::no_job;
  try {
    ask_to_stop(folder, why, false);
  } catch (const Error&) {
    const auto now = read_coordinator(folder);
    if (!now) return TagSyncJob::Stop::no_job;
    if (now->over()) return stop_of(now->exit_code);
    // One of this machine that holds no lock has ended without a record, and nobody took over.
    if (now->host == host_name() && !is_coordinated(folder)) return TagSyncJob::Stop::no_job;
    throw;
  }
  wait_until_over(folder);
  return stop_of(read_coordinator(folder).value_or(CoordinatorFile{}).exit_code);
}

// A job that is cancelled while it runs makes room for one that waits, so those go first.
void cancel_jobs(cluster::ClusterHead& head) {
  const std::vector<Json> jobs = jobs_on(head);
  for (const JobState state : {JobState::waiting, JobState::running}) {
    for (const Json& job : jobs) {
      if (is_in(job, state)) output_of_dtrain(head, {"jobs", "cancel", std::to_string(job.at("job").as_integer())});
    }
  }
}

std::unique_ptr<TagSyncJob> make_local_job(const Path& job_folder, const std::string& cluster) {
  return std::make_unique<LocalTagSyncJob>(job_folder, cluster);
}

std::unique_ptr<TagSyncJob> make_remote_job(cluster::ClusterHead& head, const std::string& job_folder) {
  return std::make_unique<RemoteTagSyncJob>(head, job_folder);
}

int sync_tags(net::AwsCalls& aws, const std::string& cluster, TagSyncJob& job, const cluster::ClusterHead::Note& note) {
  const cluster::Fleet fleet = cluster::read_fleet(aws, cluster);
  int done = 0;
  for (const cluster::TagSyncStep& step : cluster::decide_tag_sync(fleet, job.look(fleet))) {
    try {
      do_step(aws, step, job);
      note(words_of(step));
      ++done;
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      note(fmt::format("not done: {}: {}", words_of(step), error.what()));
    }
  }
  return done;
}

bool drain_node(net::AwsCalls& aws, const cluster::Fleet& fleet, const cluster::Node& node, TagSyncJob& job,
                std::chrono::seconds patience) {
  const std::string& host = node.private_ip;
  cluster::TagSyncView view = job.look(fleet);
  if (!view.job_runs || !view.listed.contains(host)) return true;
  set_status(aws, node.instance_id, "REMOVAL_QUEUED");
  job.remove(host);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    view = job.look(fleet);
    const auto word = view.log.find(host);
    if (!view.job_runs || word == view.log.end() || word->second == "REMOVED") return true;
    if (stop_signal() != 0) throw Stopped("stopped by a signal");
    std::this_thread::sleep_for(kTagLook);
  }
  return false;
}

}  // namespace dtrain::job
