#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/commands/doctor/findings_text.hpp"
#include "config/job_options.hpp"
#include "doctor/security.hpp"

namespace dtrain::cli {
namespace {

struct SecurityCommand {
  job::JobFolder job{"."};
};

void bind(config::OptionSet& set, SecurityCommand& options) {
  set.group("Job");
  config::bind_job_folder(set, options.job.path);
}

ExitCode act(const SecurityCommand& options, const config::OptionSet&, Reporter& reporter) {
  const doctor::SecurityFacts facts = doctor::read_security(options.job);
  std::vector<doctor::Finding> all = doctor::judge_choices(facts), files = doctor::judge_files(facts);
  const std::vector<doctor::Finding> ports = doctor::judge_ports(facts);
  if (!reporter.json()) {
    if (facts.has_job) answer_findings(fmt::format("{}: what the job chose", facts.folder), all, reporter);
    answer_findings(fmt::format("ports of the job's processes on {}", facts.host), ports, reporter);
    answer_findings("files of the job", files, reporter);
  }
  all.insert(all.end(), ports.begin(), ports.end());
  all.insert(all.end(), files.begin(), files.end());
  if (reporter.json()) {
    Json document = doctor::to_json(facts);
    document["schema"] = "dtrain.doctor-security/1";
    document["findings"] = json_of(all);
    reporter.answer_json(document);
  }
  return end_of_findings(has(all, doctor::Level::problem), reporter);
}

}  // namespace

std::unique_ptr<Command> make_doctor_security() {
  auto command = make_command<SecurityCommand>(
      "doctor security",
      "show who can connect to a job's processes on this machine and who can read its files, and how to close gaps",
      act);
  command->examples = {"dtrain doctor security --job-dir /efs/job", "dtrain doctor security --job-dir /efs/job --json"};
  command->see_also = {"doctor", "hosts list", "launch"};
  return command;
}

}  // namespace dtrain::cli
