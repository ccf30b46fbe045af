#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/launcher/host_endings.hpp>

#include "cli/command.hpp"
#include "config/option_values.hpp"
#include "host_lines.hpp"
#include "job/report/stop_tokens.hpp"
#include "job/spec/ssh_access.hpp"

namespace dtrain::cli {
namespace {

constexpr const char* kSchema = "dtrain.run/1";

struct RunCommand {
  job::SshAccess access;
  config::Seconds timeout{0};  // 0: none
  bool shell = false;
  std::vector<std::string> words;
};

void bind(config::OptionSet& set, RunCommand& options) {
  bind(set, options.access);
  set.group("Options");
  set.add_words("COMMAND", options.words, "program and arguments, passed on unchanged, with all blanks and quotes")
      .required = true;
  set.add("--shell", options.shell,
          "join the words of COMMAND with blanks and run them in the user's shell on each host");
  config::add_seconds(set, "--timeout", options.timeout,
                      "seconds after which the command is ended on a host; 0 for no limit", config::at_least(0));
}

net::SshCommand command_of(const RunCommand& options) {
  net::SshCommand command;
  if (options.shell) {
    command.shell = join(options.words, " ");
  } else {
    command.argv = options.words;
  }
  if (options.timeout.count() > 0)
    command.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
  return command;
}

// How it ended on one host: one of the two is there.
struct Ending {
  std::optional<net::SshExit> exit;
  std::optional<launcher::HostFailure> failure;

  launcher::HostEnding kind() const {
    return !failure && !exit->ok() ? launcher::HostEnding::failed : launcher::ending_of(failure);
  }
};

std::string text_of(const std::string& host, const Ending& ending) {
  if (ending.failure) return ending.failure->what;
  if (ending.exit->timed_out) return host + ": ended because it ran longer than --timeout";
  if (!ending.exit->signal.empty()) return fmt::format("{}: ended by SIG{}", host, ending.exit->signal);
  return fmt::format("{}: exit code {}", host, ending.exit->code);
}

Json json_of(const std::string& host, const Ending& ending, std::chrono::duration<double> took) {
  const bool known = ending.exit && ending.exit->signal.empty() && !ending.exit->timed_out;
  return Json::object({{"schema", kSchema},
                       {"host", host},
                       {"exit_code", known ? Json(ending.exit->code) : Json()},
                       {"signal", ending.exit && !ending.exit->signal.empty() ? Json(ending.exit->signal) : Json()},
                       {"timed_out", ending.exit && ending.exit->timed_out},
                       {"error", ending.failure ? Json(ending.failure->what) : Json()},
                       {"hint", ending.failure ? Json(ending.failure->hint) : Json()},
                       {"seconds", took.count()}});
}

// 128 and the signal's number, as shells say it.
int shell_code(const std::string& signal) {
  const std::optional<int> number = signal_number(signal);
  return number ? 128 + *number : static_cast<int>(ExitCode::failed);
}

ExitCode code_of_one(const Ending& ending) {
  if (ending.failure) return ending.kind() == launcher::HostEnding::unreachable ? ExitCode::refused : ExitCode::failed;
  if (ending.exit->timed_out) return ExitCode::failed;  // however the program left
  return static_cast<ExitCode>(ending.exit->signal.empty() ? ending.exit->code : shell_code(ending.exit->signal));
}

class Run {
 public:
  Run(const RunCommand& options, Reporter& reporter)
      : hosts_(job::read_hosts(options.access)),
        command_(command_of(options)),
        access_(options.access),
        endings_(hosts_.names.size()),
        reporter_(reporter),
        lines_(hosts_.names, kSchema, reporter) {
    net::shell_line(command_);  // refuses before any host is asked
  }

  ExitCode act() {
    const job::StopWatch watch;
    launcher::fan_out(
        hosts_.targets, job::fan_out_options(access_, watch.token()),
        [this](std::size_t host, net::SshSession& session) { run_on(host, session); },
        [this](std::size_t host, const auto& failure, auto took) { end(host, failure, took); });
    std::vector<launcher::HostEnding> kinds;
    for (const Ending& ending : endings_) kinds.push_back(ending.kind());
    if (stop_signal() != 0) throw Interrupted(stop_signal(), launcher::stopped_text(kinds));
    if (endings_.size() > 1)
      return end_of_hosts(launcher::sum_up(hosts_.names, kinds, reporter_), hosts_.names, reporter_);
    const ExitCode code = code_of_one(endings_[0]);
    const bool is_of_program = endings_[0].exit && !endings_[0].exit->timed_out;
    return is_of_program ? code : end_of_hosts(code, hosts_.names, reporter_);
  }

 private:
  void run_on(std::size_t host, net::SshSession& session) {
    net::SshCommand command = command_;
    command.on_output = [&](std::string_view bytes) { lines_.take(host, OutputStream::output, bytes); };
    command.on_error = [&](std::string_view bytes) { lines_.take(host, OutputStream::error, bytes); };
    endings_[host].exit = session.run(command);
  }

  void end(std::size_t host, const std::optional<launcher::HostFailure>& failure, std::chrono::duration<double> took) {
    endings_[host].failure = failure;
    lines_.finish(host);
    lines_.say([&](Reporter& reporter) {
      const Ending& ending = endings_[host];
      if (reporter.json()) reporter.answer_json(json_of(hosts_.names[host], ending, took));
      if (ending.kind() == launcher::HostEnding::done || ending.kind() == launcher::HostEnding::stopped) return;
      reporter.warn(text_of(hosts_.names[host], ending));
      if (failure && !failure->hint.empty()) reporter.note("hint: " + failure->hint);
    });
  }

  const job::ChosenHosts hosts_;
  const net::SshCommand command_;
  const job::SshAccess& access_;
  std::vector<Ending> endings_;  // by host; each belongs to its host's thread until fan_out() returns
  Reporter& reporter_;           // behind lines_ while hosts are at work
  HostLines lines_;
};

ExitCode act(const RunCommand& options, const config::OptionSet&, Reporter& reporter) {
  return Run(options, reporter).act();
}

}  // namespace

std::unique_ptr<Command> make_run() {
  auto command = make_command<RunCommand>("run", "run a command on every host over ssh", act);
  command->examples = {"dtrain run -H hosts -- hostname", "dtrain run -H hosts -j 8 --timeout 60 -- nvidia-smi -L",
                       "dtrain run -H hosts --shell -- 'df -h /data | tail -n 1'"};
  command->see_also = {"sync", "hosts list", "train"};
  return command;
}

}  // namespace dtrain::cli
