// The command tree as plain values: the parser, help and every generated document are views of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>

#include "config/config_file.hpp"
#include "config/option_set.hpp"

namespace dtrain::cli {

struct Command {
  std::string path;                   // "data prepare"
  std::string sentence;               // what it does: lower case, no full stop
  std::vector<std::string> examples;  // whole command lines that parse
  std::vector<std::string> see_also;  // paths of other commands
  // Names of the options that --help explains, where the command has many; it lists the names of the others. Empty:
  // --help explains every option.
  std::vector<std::string> first_options;
  config::OptionSet options;
  std::function<ExitCode(Reporter&)> run;  // called once, after options took their values
  std::shared_ptr<void> storage;           // owns the fields behind `options`
};

// A word that only leads to others: "data".
struct CommandGroup {
  std::string name;
  std::string sentence;
};

// A configuration file that was read.
struct ConfigFile {
  config::Source source;
  std::string name;
  std::vector<config::ConfigEntry> entries;
};

struct CommandTree {
  ReportOptions globals;
  std::optional<Path> config_file;  // --config
  // From the weakest to the strongest; set by resolve_globals(). Each is read once, for it may be a pipe.
  std::vector<ConfigFile> config_files;
  bool help = false, long_help = false, version = false, show_config = false;
  config::OptionSet global_options;  // bound to the fields above
  std::vector<CommandGroup> groups;
  std::vector<std::unique_ptr<Command>> commands;

  CommandTree();
  CommandTree(const CommandTree&) = delete;

  Command* find(std::string_view path) const;  // nullptr: no such command
  const CommandGroup* find_group(std::string_view name) const;
  // The words that may follow `path` ("" : at the start).
  std::vector<std::string> next_words(std::string_view path) const;
};

// Makes a command whose options live in a fresh Options, filled by bind(OptionSet&, Options&).
template <typename Options>
std::unique_ptr<Command> make_command(std::string path, std::string sentence,
                                      ExitCode (*act)(const Options&, const config::OptionSet&, Reporter&)) {
  auto command = std::make_unique<Command>();
  auto options = std::make_shared<Options>();
  bind(command->options, *options);
  command->path = std::move(path);
  command->sentence = std::move(sentence);
  command->run = [act, fields = options.get(), set = &command->options](Reporter& reporter) {
    return act(*fields, *set, reporter);
  };
  command->storage = std::move(options);
  return command;
}

// One maker per subcommand file.
std::unique_ptr<Command> make_train();
std::unique_ptr<Command> make_eval();
std::unique_ptr<Command> make_predict();
std::unique_ptr<Command> make_launch();
std::unique_ptr<Command> make_hosts_list();
std::unique_ptr<Command> make_hosts_add();
std::unique_ptr<Command> make_hosts_remove();
std::unique_ptr<Command> make_hosts_drain();
std::unique_ptr<Command> make_hosts_join();
std::unique_ptr<Command> make_hosts_leave();
std::unique_ptr<Command> make_events();
std::unique_ptr<Command> make_plot();
std::unique_ptr<Command> make_board();
std::unique_ptr<Command> make_stop();
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_sync();
std::unique_ptr<Command> make_tail_logs();
std::unique_ptr<Command> make_jobs_list();
std::unique_ptr<Command> make_jobs_show();
std::unique_ptr<Command> make_jobs_logs();
std::unique_ptr<Command> make_jobs_wait();
std::unique_ptr<Command> make_jobs_cancel();
std::unique_ptr<Command> make_jobs_run();
std::unique_ptr<Command> make_jobs_forget();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_doctor_security();
std::unique_ptr<Command> make_agent();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_import();
std::unique_ptr<Command> make_data_prepare();
std::unique_ptr<Command> make_data_pack();
std::unique_ptr<Command> make_data_import();
std::unique_ptr<Command> make_data_ls();
std::unique_ptr<Command> make_data_verify();
std::unique_ptr<Command> make_data_show();
std::unique_ptr<Command> make_data_cp();
std::unique_ptr<Command> make_data_unpack();
std::unique_ptr<Command> make_data_bench();
std::unique_ptr<Command> make_bench_train();
std::unique_ptr<Command> make_bench_elastic();
std::unique_ptr<Command> make_bench_allreduce();
std::unique_ptr<Command> make_cluster_plan();
std::unique_ptr<Command> make_cluster_up();
std::unique_ptr<Command> make_cluster_ssh();
std::unique_ptr<Command> make_cluster_list();
std::unique_ptr<Command> make_cluster_logs();
std::unique_ptr<Command> make_cluster_env();
std::unique_ptr<Command> make_cluster_watch();
std::unique_ptr<Command> make_cluster_status();
std::unique_ptr<Command> make_cluster_add();
std::unique_ptr<Command> make_cluster_remove();
std::unique_ptr<Command> make_cluster_down();
std::unique_ptr<Command> make_cluster_health();
std::unique_ptr<Command> make_cluster_prepare_s3();
std::unique_ptr<Command> make_cluster_cost();
std::unique_ptr<Command> make_cluster_template();
std::unique_ptr<Command> make_completion();
// The tree must outlive the command and have all others already.
std::unique_ptr<Command> make_help(const CommandTree& tree);

}  // namespace dtrain::cli
