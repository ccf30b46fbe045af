#include <dtrain/cli/run.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cli/commands/cluster/cluster_choice.hpp"
#include "cli/commands/cluster/hosts/commands.hpp"
#include "command.hpp"
#include "config/option_values.hpp"
#include "console.hpp"
#include "docs/documents.hpp"
#include "doctor/build_facts.hpp"
#include "help.hpp"
#include "parse.hpp"
#include "show_config.hpp"
#include "sources.hpp"
#include "unknown_variables.hpp"

namespace dtrain::cli {
namespace {

void answer_text(Reporter& reporter, std::string text) {
  text.pop_back();
  reporter.answer(text);
}

ExitCode refuse_without_command(const CommandTree& tree, const std::string& path) {
  if (tree.globals.json) {
    throw UsageError(fmt::format("{}a command is missing", path.empty() ? "" : path + ": "),
                     fmt::format("commands are: {}", join(tree.next_words(path), ", ")));
  }
  std::fputs(overview(tree, path).c_str(), stderr);
  return ExitCode::usage;
}

void answer_page(const CommandTree& tree, const std::string& path, Reporter& reporter) {
  if (reporter.json()) return reporter.answer_json(help_json(tree, path));
  answer_text(reporter, tree.long_help ? long_help(tree, path, reporter) : short_help(tree, path, reporter));
}

// What the configuration does not show, because it depends on the data.
void note_later_choices(const Command& command, Reporter& reporter) {
  if (!command.options.find("finetune") || !command.options.chosen("finetune")) return;
  reporter.note("--finetune chooses what is not given when the run begins; `dtrain train ... --dry-run` prints it");
}

// With --verbose and with --json also what the program was built of.
void answer_version(Reporter& reporter) {
  if (!reporter.json()) reporter.answer("dtrain " DTRAIN_VERSION);
  if (!reporter.json() && !reporter.options().verbose) return;
  const Json facts = doctor::build_facts();
  if (reporter.json()) return reporter.answer_json(facts);
  const Json& commit = facts.at("commit");
  reporter.answer("commit: " + (commit.is_null() ? "unknown (built in a working tree)" : commit.as_string()));
  for (const char* key : {"compiler", "build", "cpu_kernels", "gpus"}) {
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    reporter.answer(fmt::format("{}: {}", name, facts.at(key).as_string()));
  }
  for (const auto& [name, version] : facts.at("libraries").as_object())
    reporter.answer(fmt::format("{} {}", name, version.as_string()));
}

// --csv and --json choose the form of the same answers.
void let_stronger_form_decide(const CommandTree& tree, Command& command, ReportOptions& shape, Console& console) {
  config::Option* const csv = command.options.find("csv");
  if (!csv || !console.json() || csv->show() != "true") return;
  if (config::first_decides(*csv, *tree.global_options.find("json"), "both choose the form")) {
    console.set_json(false);
    shape.json = false;
  } else {
    csv->set("false");
  }
}

ExitCode act(CommandTree& tree, const Parsed& parsed, const std::vector<std::string>& given, ReportOptions& shape,
             Console& reporter) {
  Command* const command = parsed.command;
  if (tree.version) {
    answer_version(reporter);
  } else if (tree.help || tree.long_help) {
    answer_page(tree, parsed.path, reporter);
  } else if (!command) {
    return refuse_without_command(tree, parsed.path);
  } else {
    if (const auto outcome = act_on_registered(*command, tree.show_config, reporter)) return *outcome;
    if (const auto outcome = run_on_cluster(*command, given, tree.show_config, reporter)) return *outcome;
    resolve(tree, *command);
    if (!tree.show_config) {
      let_stronger_form_decide(tree, *command, shape, reporter);
      return command->run(reporter);
    }
    show_config(tree, *command, reporter);
    note_later_choices(*command, reporter);
  }
  return ExitCode::ok;
}

void warn_of_sources(const CommandTree& tree, const std::vector<std::string>& warnings, Console& console) {
  for (const std::string& warning : warnings) console.warn(warning);
  if (tree.help || tree.long_help || tree.version) return;
  for (const std::string& warning : warnings_of_variables(tree, environment_names())) console.warn(warning);
}

// Sets `shape` to what the options say about the output once they are read.
ExitCode dispatch(const std::vector<std::string>& given, ReportOptions& shape) {
  CommandTree tree;
  const Parsed parsed = parse(tree, given);
  const std::vector<std::string> warnings = resolve_globals(tree, parsed.command);
  shape = tree.globals;
  Console console(tree.globals);
  // An agent has the variables of the command that began its job, which has warned of them.
  const bool is_agent_process = parsed.command && parsed.command->path == "agent";
  if (!is_agent_process) warn_of_sources(tree, warnings, console);
  const ExitCode code = act(tree, parsed, given, shape, console);
  if (stop_signal() != SIGPIPE) console.finish();  // else the work has ended for want of a reader
  return code;
}

// The text of a switch, which is judged once the options are read.
bool is_yes(const std::string& text) {
  try {
    return config::yes_or_no(text);
  } catch (const UsageError&) {
    return false;
  }
}

// The shape of errors that come before the options are read, by a look at the bare words. What follows `--` belongs to
// another program.
ReportOptions shape_of_words(const std::vector<std::string>& given) {
  ReportOptions shape;
  const auto end = std::ranges::find(given, "--");
  shape.json = is_yes(environment("DTRAIN_JSON").value_or(""));
  shape.color = environment("DTRAIN_COLOR").value_or(shape.color);
  for (auto word = given.begin(); word != end; ++word) {
    if (*word == "--json" || *word == "--json=true") shape.json = true;
    if (word->starts_with("--color=")) shape.color = word->substr(word->find('=') + 1);
    if (*word == "--color" && word + 1 != end) shape.color = *(word + 1);
  }
  return shape;
}

// Files and sockets that the program opens would get the numbers of descriptors that it was started without, and what
// it says would be written into them. Reading and writing still fail on these, as on closed ones.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int end_by_signal(int signal) {
  constexpr rlimit kNoCore{0, 0};  // SIGXCPU would leave the memory of the training in a file
  ::setrlimit(RLIMIT_CORE, &kNoCore);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  return 128 + signal;
}

std::string hint_of(const std::error_code& code) {
  if (code == std::errc::too_many_symbolic_link_levels) return "links lead to each other there: name the file itself";
  if (code == std::errc::filename_too_long) return "choose a shorter name";
  if (code == std::errc::permission_denied) return "choose a file or folder that you may use";
  if (code == std::errc::no_such_file_or_directory) return "go to a folder that exists: cd";
  if (code == std::errc::resource_unavailable_try_again)
    return "a limit on processes, threads or memory (ulimit -u, -v, or of the container) may be too low";
  return "";
}

constexpr const char* kOutOfMemory = "out of memory";
constexpr const char* kMemoryHint = "use a smaller --batch-size or network";

// An exception that no thread caught. Memory may end anywhere; everything else is a fault of this program.
[[noreturn]] void end_by_exception() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "dtrain: %s\nhint: %s\n", kOutOfMemory, kMemoryHint);
    ::_exit(static_cast<int>(ExitCode::failed));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dtrain: unexpected: %s\n", error.what());
  } catch (...) {
    std::fputs("dtrain: unexpected exception\n", stderr);
  }
  std::abort();
}

}  // namespace

int run(int argc, char** argv) {
  fill_standard_descriptors();
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  ReportOptions shape = shape_of_words(given);
  const auto report = [&shape](const Error& error) { Console(shape).error(error); };
  std::set_terminate(end_by_exception);
  std::signal(SIGXFSZ, SIG_IGN);  // a write past a limit then fails with EFBIG, and nothing half written stays
  try {
    return static_cast<int>(dispatch(given, shape));
  } catch (const Interrupted& stop) {
    report(stop);
    std::fflush(nullptr);
    return end_by_signal(stop.signal());
  } catch (const Error& error) {
    report(error);
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    report(Error(kOutOfMemory, kMemoryHint));
  } catch (const std::filesystem::filesystem_error& error) {
    report(Error(fmt::format("{}: {}", error.path1().empty() ? "the current folder" : error.path1().string(),
                             error.code().message()),
                 hint_of(error.code())));
  } catch (const std::system_error& error) {
    report(Error(fmt::format("the system refused: {}", error.code().message()), hint_of(error.code())));
  } catch (const std::exception& error) {
    report(Error(fmt::format("unexpected: {}", error.what())));
  }
  return static_cast<int>(ExitCode::failed);
}

}  // namespace dtrain::cli
