#include <dtrain/launcher/scheduler_job.hpp>

#include <fmt/format.h>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

namespace dtrain::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kJobName = "dtrain";

Words with(Words words, const Words& command) {
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace

std::vector<std::string> salloc_command(const SchedulerJob& job) {
  Words words = {job.program.string(), fmt::format("--nodes={}", job.count),  "--exclusive", "--mem=0",
                 "--no-kill",          fmt::format("--job-name={}", kJobName)};
  if (!job.queue.empty()) words.push_back("--partition=" + job.queue);
  if (!job.hosts.empty()) words.push_back("--nodelist=" + join(job.hosts, ","));
  return with(std::move(words), job.command);
}

std::vector<std::string> qrsh_command(const SchedulerJob& job) {
  Words words = {job.program.string(),
                 "-now",
                 "n",
                 "-cwd",
                 "-noshell",
                 "-nostdin",
                 "-N",
                 kJobName,
                 "-pe",
                 job.parallel_environment,
                 std::to_string(job.count)};
  if (!job.queue.empty()) words.insert(words.end(), {"-q", job.queue});
  return with(std::move(words), job.command);
}

std::vector<std::string> parallel_environments(const std::string& folders) {
  Words names;
  try {
    const Path qconf = find_program("qconf", folders, "");
    const ProgramAnswer answer = ask_program({qconf.string(), "-spl"});
    if (answer.code == 0) names = split(trim(answer.output), '\n');
  } catch (const Error&) {  // the caller reports it
  }
  std::erase(names, "");
  return names;
}

}  // namespace dtrain::launcher
