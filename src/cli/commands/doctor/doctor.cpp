#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/doctor/findings_text.hpp"
#include "cli/commands/hosts/host_lines.hpp"
#include "doctor/doctor_hosts.hpp"
#include "doctor/doctor_part.hpp"

namespace dtrain::cli {
namespace {

struct DoctorCommand {
  job::SshAccess access;
  std::optional<Path> job_folder;
  bool ask_aws = false;
  std::string part;
};

void bind(config::OptionSet& set, DoctorCommand& options) {
  bind(set, options.access);
  set.group("Options");
  set.add("--job-dir", options.job_folder,
          "job folder to check for free space; with -H also whether all hosts see the same files in it")
      .legacy_variable = "EFS_MOUNT";
  set.add("--aws", options.ask_aws,
          "check only what AWS needs on this machine, without the hosts: the credentials, whose absence is a problem "
          "then, the region, and whether this dtrain is a bundle. Without this option they are checked where "
          "credentials are set up");
  config::Option& part = set.add_choice("--part", options.part, {"serve", "reach"},
                                        "part of the check that a host does for a doctor on another machine");
  part.hidden = part.flag_only = true;
}

bool uses_aws() {
  if (environment("AWS_ACCESS_KEY_ID") || environment("AWS_PROFILE") || environment("AWS_WEB_IDENTITY_TOKEN_FILE"))
    return true;
  std::error_code unreadable;  // the home of another user
  return std::filesystem::exists(Path(environment("HOME").value_or("/")) / ".aws", unreadable);
}

Json links_of(const doctor::HostFacts& facts, const std::vector<doctor::HostDiagnosis>& reports) {
  Json links = Json::object({});
  for (std::size_t to = 0; to < facts.links.size(); ++to) {
    if (&reports[to].facts == &facts || !reports[to].facts.answered) continue;
    const doctor::LinkFacts& link = facts.links[to];
    links[reports[to].facts.name] = Json::object({{"reached", link.error.empty()},
                                                  {"milliseconds", link.milliseconds},
                                                  {"error", link.error.empty() ? Json() : Json(link.error)}});
  }
  return links;
}

Json rows_of(const std::vector<doctor::HostDiagnosis>& reports) {
  Json rows = Json::array();
  for (const doctor::HostDiagnosis& report : reports) {
    rows.push_back(
        Json::object({{"host", report.facts.name},
                      {"answered", report.facts.answered},
                      {"clock_offset_seconds", Json::array({report.facts.clock_at_least, report.facts.clock_at_most})},
                      {"links", links_of(report.facts, reports)},
                      {"facts", report.machine},
                      {"findings", json_of(report.findings)}}));
  }
  return rows;
}

std::vector<doctor::Finding> judge_together(const std::vector<doctor::HostDiagnosis>& reports,
                                            const std::string& folder) {
  std::vector<doctor::HostFacts> hosts;
  for (const doctor::HostDiagnosis& report : reports) hosts.push_back(report.facts);
  std::vector<doctor::Finding> found = doctor::judge_machines(hosts);
  std::ranges::move(doctor::judge_clocks(hosts), std::back_inserter(found));
  std::ranges::move(doctor::judge_links(hosts), std::back_inserter(found));
  std::ranges::move(doctor::judge_folder(hosts, folder), std::back_inserter(found));
  return found;
}

struct Diagnosis {
  std::string host;
  doctor::MachineFacts facts;
  std::vector<doctor::Finding> here, together;
  std::vector<doctor::HostDiagnosis> hosts;

  bool has(doctor::Level level) const {
    return cli::has(here, level) || cli::has(together, level) ||
           std::ranges::any_of(hosts,
                               [&](const doctor::HostDiagnosis& report) { return cli::has(report.findings, level); });
  }
};

// -H always. The hosts of a file that a variable names are asked only if it can be used: judge() reports one that
// cannot.
bool asks_hosts(const DoctorCommand& options, const config::OptionSet& set, const doctor::MachineFacts& here) {
  const config::Option& file = *set.find("hostfile");
  return options.access.hostfile && (file.origin != file.legacy_variable || here.cluster.has_workers_file);
}

Diagnosis examine(const DoctorCommand& options, const config::OptionSet& set) {
  const std::string folder = options.job_folder ? std::filesystem::absolute(*options.job_folder).string() : "";
  Diagnosis diagnosis;
  diagnosis.facts = doctor::read_machine(folder, options.ask_aws || uses_aws());
  diagnosis.host = diagnosis.facts.host;
  diagnosis.here = options.ask_aws ? doctor::judge_identity(diagnosis.facts) : doctor::judge(diagnosis.facts);
  if (!options.ask_aws && asks_hosts(options, set, diagnosis.facts)) {
    diagnosis.hosts = doctor::ask_hosts(options.access, folder);
    diagnosis.together = judge_together(diagnosis.hosts, folder);
  }
  return diagnosis;
}

void answer(const Diagnosis& diagnosis, Reporter& reporter) {
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.doctor/1"},
                                       {"host", diagnosis.host},
                                       {"facts", doctor::to_json(diagnosis.facts)},
                                       {"findings", json_of(diagnosis.here)},
                                       {"hosts", rows_of(diagnosis.hosts)},
                                       {"together", json_of(diagnosis.together)}}));
    return;
  }
  answer_findings(fmt::format("{} (this machine)", diagnosis.host), diagnosis.here, reporter);
  for (const doctor::HostDiagnosis& report : diagnosis.hosts)
    answer_findings(report.facts.name, report.findings, reporter);
  if (!diagnosis.together.empty()) answer_findings("together", diagnosis.together, reporter);
}

ExitCode code_of(const Diagnosis& diagnosis, Reporter& reporter) {
  std::vector<std::string> names;
  std::vector<launcher::HostEnding> endings;
  for (const doctor::HostDiagnosis& report : diagnosis.hosts) {
    names.push_back(report.facts.name);
    endings.push_back(report.ending);
  }
  const ExitCode hosts = end_of_hosts(launcher::sum_up(names, endings, reporter), names, reporter);
  if (hosts != ExitCode::ok) return hosts;
  return end_of_findings(diagnosis.has(doctor::Level::problem), reporter);
}

ExitCode act(const DoctorCommand& options, const config::OptionSet& set, Reporter& reporter) {
  if (options.part == "serve") return doctor::serve_part(reporter);
  if (options.part == "reach") return doctor::reach_part(reporter);
  const Diagnosis diagnosis = examine(options, set);
  answer(diagnosis, reporter);
  return code_of(diagnosis, reporter);
}

}  // namespace

std::unique_ptr<Command> make_doctor() {
  auto command = make_command<DoctorCommand>(
      "doctor", "find problems on this machine or on hosts, with their effect and the command that fixes them", act);
  command->examples = {"dtrain doctor", "dtrain doctor -H hosts --job-dir /efs/job", "dtrain doctor --json --aws"};
  command->see_also = {"doctor security", "run", "train", "hosts list"};
  return command;
}

}  // namespace dtrain::cli
