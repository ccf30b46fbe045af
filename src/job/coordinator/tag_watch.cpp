#include "tag_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenStarts = 60s;
constexpr const char* kTemplate = "WORKER_LAUNCH_TEMPLATE_ID";
constexpr const char* kTag = "ELASTIC_WORKER_TAG";

}  // namespace

TagWatchChoice choose_tag_watch(
    const std::function<std::optional<std::string>(const std::string& variable)>& environment) {
  const std::string tag = environment(kTag).value_or("");
  if (tag.empty() || environment(kTemplate).value_or("").empty()) return {};
  if (const auto cluster = cluster::cluster_of_elastic_tag(tag)) return {.cluster = *cluster};
  return {.complaint = fmt::format("{}={} is not the tag of a cluster of dtrain's: no tags are followed", kTag, tag)};
}

TagWatch::TagWatch(std::string cluster, JobFolder folder, Reporter& reporter)
    : cluster_(std::move(cluster)), folder_(std::move(folder)), reporter_(reporter) {}

TagWatch::~TagWatch() { end(); }

void TagWatch::tick(Time now) {
  if (process_ == 0 && now >= next_start_) {
    next_start_ = now + kBetweenStarts;
    try {
      start();
    } catch (const Error& error) {
      reporter_.warn(fmt::format("the tags of cluster {} are not followed: {}", cluster_, error.what()));
    }
  }
  if (process_ == 0) return;
  const bool over = has_ended(process_);  // before the last output is read
  pass_on();
  if (!over) return;
  end();
  reporter_.warn(fmt::format("the process that follows the tags of cluster {} ended; it will be restarted", cluster_));
}

void TagWatch::start() {
  Pipe pipe = make_pipe();
  output_ = std::move(pipe.read_end);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  Spawn child = spawn_of(own_command());
  child.arguments.insert(child.arguments.end(),
                         {"cluster", "watch", cluster_, "--here", "--job-dir", folder_.path.string()});
  if (reporter_.options().quiet) child.arguments.push_back("--quiet");
  child.environment = with_variables(own_environment(), {"TERM=dumb"});
  child.error = pipe.write_end.get();
  // In a session of its own: signals of the terminal are for the job, and end this process with it.
  child.group = Spawn::Group::session;
  child.death_signal = SIGKILL;
  process_ = spawn(child);
}

void TagWatch::pass_on() {
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(output_.get(), piece.data(), piece.size());
    if (got <= 0) break;
    unfinished_.append(piece.data(), static_cast<std::size_t>(got));
  }
  for (std::size_t end = 0; (end = unfinished_.find('\n')) != unfinished_.npos; unfinished_.erase(0, end + 1)) {
    reporter_.pass_on(std::string_view(unfinished_).substr(0, end));
  }
}

// An unfinished step is carried out by the next watcher.
void TagWatch::end() {
  if (process_ == 0) return;
  kill_tree(process_);
  wait_for_end(process_);
  process_ = 0;
  output_ = {};
}

}  // namespace dtrain::job
