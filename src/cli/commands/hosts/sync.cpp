#include <fmt/format.h>

#include <mutex>

#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/host_endings.hpp>
#include <dtrain/launcher/sync.hpp>

#include "cli/command.hpp"
#include "host_lines.hpp"
#include "job/report/stop_tokens.hpp"
#include "job/spec/ssh_access.hpp"

namespace dtrain::cli {
namespace {

struct SyncCommand {
  job::SshAccess access;
  Path source;
  std::string destination, exclude;
};

void bind(config::OptionSet& set, SyncCommand& options) {
  set.group("Options");
  set.add("SRC", options.source, "file, or folder with all its content").required = true;
  set.add("DST", options.destination, "DST",
          "path on each host, relative to the user's home. A folder's content goes into it; a file gets this name, or "
          "goes into it if it is a folder or ends in /")
      .required = true;
  set.add("--exclude", options.exclude, "GLOB,...",
          "patterns of names to leave out; a matching folder is left out with all its content");
  bind(set, options.access);
}

std::vector<std::string> patterns_in(const std::string& text) {
  std::vector<std::string> patterns = split(text, ',');
  std::erase(patterns, "");
  return patterns;
}

class Sync {
 public:
  Sync(const SyncCommand& options, Reporter& reporter)
      : options_(options),
        hosts_(job::read_hosts(options.access)),
        tree_(launcher::read_tree(options.source, {.patterns = patterns_in(options.exclude)})),
        results_(hosts_.names.size()),
        endings_(hosts_.names.size(), launcher::HostEnding::stopped),
        reporter_(reporter) {
    for (const std::string& skipped : tree_.skipped) reporter_.warn(fmt::format("left out: {}", skipped));
  }

  ExitCode act() {
    const job::StopWatch watch;
    launcher::fan_out(
        hosts_.targets, job::fan_out_options(options_.access, watch.token()),
        [this](std::size_t host, net::SshSession& session) {
          results_[host] = launcher::sync_tree(tree_, session, options_.destination);
        },
        [this](std::size_t host, const auto& failure, auto took) { end(host, failure, took); });
    if (stop_signal() != 0)
      throw Interrupted(stop_signal(), launcher::stopped_text(endings_), "every file there is complete");
    return end_of_hosts(launcher::sum_up(hosts_.names, endings_, reporter_), hosts_.names, reporter_);
  }

 private:
  void end(std::size_t host, const std::optional<launcher::HostFailure>& failure, std::chrono::duration<double> took) {
    endings_[host] = launcher::ending_of(failure);
    if (reporter_.json()) {
      reporter_.answer_json(json_of(host, failure, took));
    } else if (!failure) {
      const launcher::SyncResult& result = results_[host];
      const std::string modes = result.modes > 0 ? fmt::format(", permissions of {} set", result.modes) : "";
      reporter_.answer(fmt::format("{}: {} of {} files copied{}, {} in {}", hosts_.names[host], result.copied,
                                   result.files, modes, format_bytes(result.bytes), format_duration(took)));
    }
    if (!failure) return warn_of_modes(host);
    if (endings_[host] == launcher::HostEnding::stopped) return;
    reporter_.warn(failure->what);
    if (!failure->hint.empty()) reporter_.note("hint: " + failure->hint);
  }

  void warn_of_modes(std::size_t host) {
    const std::string kept = launcher::refused_modes_text(results_[host]);
    if (kept.empty()) return;
    reporter_.warn(fmt::format("{}: {}", hosts_.names[host], kept));
    reporter_.note("hint: log in as their owner, or let the owner set them");
  }

  Json json_of(std::size_t host, const std::optional<launcher::HostFailure>& failure,
               std::chrono::duration<double> took) const {
    const launcher::SyncResult& result = results_[host];
    // What a host holds that failed on the way is not known.
    const auto count = [&](std::uint64_t known) { return failure ? Json() : Json(known); };
    return Json::object({{"schema", "dtrain.sync/1"},
                         {"host", hosts_.names[host]},
                         {"files", count(result.files)},
                         {"copied", count(result.copied)},
                         {"modes", count(result.modes)},
                         {"refused_modes", count(result.refused_modes)},
                         {"bytes", count(result.bytes)},
                         {"error", failure ? Json(failure->what) : Json()},
                         {"hint", failure ? Json(failure->hint) : Json()},
                         {"seconds", took.count()}});
  }

  const SyncCommand& options_;
  const job::ChosenHosts hosts_;
  const launcher::SyncTree tree_;
  std::vector<launcher::SyncResult> results_;  // by host; each belongs to its host's thread
  std::vector<launcher::HostEnding> endings_;  // touched in end() alone, as reporter_ is meanwhile
  Reporter& reporter_;
};

ExitCode act(const SyncCommand& options, const config::OptionSet&, Reporter& reporter) {
  return Sync(options, reporter).act();
}

}  // namespace

std::unique_ptr<Command> make_sync() {
  auto command =
      make_command<SyncCommand>("sync", "copy files to every host, only those that differ, and verify them", act);
  command->examples = {"dtrain sync d/cifar10_train.rec /data/ -H hosts",
                       "dtrain sync . job --exclude .git,*.o -H hosts"};
  command->see_also = {"run", "train"};
  return command;
}

}  // namespace dtrain::cli
