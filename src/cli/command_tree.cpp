#include <algorithm>

#include "command.hpp"
#include "commands/cluster/hosts/commands.hpp"
#include "commands/cluster/keep/commands.hpp"

namespace dtrain::cli {

static void bind(config::OptionSet& set, CommandTree& tree) {
  set.group("Common options");
  set.add("--json", tree.globals.json,
          "print answers as JSON: one document, or one object per line for streams. An error is one object too, on the "
          "last line of stderr");
  set.add_choice("--color", tree.globals.color, {"auto", "always", "never"},
                 "when to use colour; auto uses it on terminals");
  set.add("-q,--quiet", tree.globals.quiet, "print only answers, warnings and errors");
  set.add("-v,--verbose", tree.globals.verbose, "print more details to stderr");
  set.add("--config", tree.config_file,
          "configuration file that wins over ./dtrain.toml and the user's; it may set every option")
      .flag_only = true;
  set.add("--show-config", tree.show_config, "print the value and the origin of every option, then exit").flag_only =
      true;
  set.add("-h,--help", tree.help, "show the help; a command with many options explains the first ones").flag_only =
      true;
  set.add("--help-all", tree.long_help, "show the help with every option explained").flag_only = true;
  set.add("--version", tree.version,
          "print the version and exit; with --verbose or --json also compiler, kernels and libraries")
      .flag_only = true;
}

CommandTree::CommandTree() {
  bind(global_options, *this);
  groups = {{"hosts", "list, add and remove the hosts of a running job"},
            {"jobs", "queues of jobs that are resumed after losses, on clusters and on this machine"},
            {"data", "prepare data sets, and inspect or copy record files"},
            {"cluster", "create and manage clusters in your AWS account, or of machines that are there already"},
            {"bench", "measure training, loading and communication"}};
  commands.push_back(make_train());
  commands.push_back(make_launch());
  commands.push_back(make_hosts_list());
  commands.push_back(make_hosts_add());
  commands.push_back(make_hosts_remove());
  commands.push_back(make_hosts_drain());
  commands.push_back(make_hosts_join());
  commands.push_back(make_hosts_leave());
  commands.push_back(make_events());
  commands.push_back(make_plot());
  commands.push_back(make_board());
  commands.push_back(make_stop());
  commands.push_back(make_run());
  commands.push_back(make_sync());
  commands.push_back(make_tail_logs());
  commands.push_back(make_jobs_list());
  commands.push_back(make_jobs_show());
  commands.push_back(make_jobs_logs());
  commands.push_back(make_jobs_wait());
  commands.push_back(make_jobs_cancel());
  commands.push_back(make_jobs_forget());
  commands.push_back(make_jobs_run());
  commands.push_back(make_doctor());
  commands.push_back(make_doctor_security());
  commands.push_back(make_eval());
  commands.push_back(make_predict());
  commands.push_back(make_inspect());
  commands.push_back(make_export());
  commands.push_back(make_import());
  commands.push_back(make_data_prepare());
  commands.push_back(make_data_pack());
  commands.push_back(make_data_import());
  commands.push_back(make_data_ls());
  commands.push_back(make_data_verify());
  commands.push_back(make_data_show());
  commands.push_back(make_data_cp());
  commands.push_back(make_data_unpack());
  commands.push_back(make_data_bench());
  commands.push_back(make_cluster_plan());
  commands.push_back(make_cluster_up());
  commands.push_back(make_cluster_adopt());
  commands.push_back(make_cluster_register());
  commands.push_back(make_cluster_status());
  commands.push_back(make_cluster_add());
  commands.push_back(make_cluster_remove());
  commands.push_back(make_cluster_ssh());
  commands.push_back(make_cluster_list());
  commands.push_back(make_cluster_types());
  commands.push_back(make_cluster_logs());
  commands.push_back(make_cluster_env());
  commands.push_back(make_cluster_watch());
  commands.push_back(make_cluster_events());
  commands.push_back(make_cluster_stop());
  commands.push_back(make_cluster_start());
  commands.push_back(make_cluster_down());
  commands.push_back(make_cluster_health());
  commands.push_back(make_cluster_prepare_s3());
  commands.push_back(make_cluster_cost());
  commands.push_back(make_cluster_template());
  commands.push_back(make_cluster_iam_policy());
  commands.push_back(make_bench_train());
  commands.push_back(make_bench_elastic());
  commands.push_back(make_bench_allreduce());
  commands.push_back(make_agent());
  commands.push_back(make_completion());
  commands.push_back(make_help(*this));
}

Command* CommandTree::find(std::string_view path) const {
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c->path == path; });
  return found == commands.end() ? nullptr : found->get();
}

const CommandGroup* CommandTree::find_group(std::string_view name) const {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.name == name; });
  return found == groups.end() ? nullptr : &*found;
}

std::vector<std::string> CommandTree::next_words(std::string_view path) const {
  const std::string lead = path.empty() ? "" : std::string(path) + " ";
  std::vector<std::string> words;
  for (const auto& command : commands) {
    if (!command->path.starts_with(lead)) continue;
    const std::string rest = command->path.substr(lead.size());
    const std::string word = rest.substr(0, rest.find(' '));
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return words;
}

}  // namespace dtrain::cli
