#include <fmt/format.h>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "cli/commands/cluster/cluster_cloud.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

struct JobsForgetCommand {
  QueueChoice queue;
  std::string jobs;
  std::optional<int> days, automatic;
  bool yes = false;
};

void bind(config::OptionSet& set, JobsForgetCommand& options) {
  set.add("JOB", options.jobs, "JOB", "numbers of the jobs, as shown by `dtrain jobs list`").many = true;
  set.add("--older-than", options.days, "DAYS", "remove jobs that ended at least DAYS days ago", config::at_least(0))
      .flag_only = true;
  set.add(
         "--automatic", options.automatic, "DAYS",
         "from now on the runner of the queue removes each job DAYS days after its end; 0 for never, as in a new queue",
         config::at_least(0))
      .flag_only = true;
  config::bind_yes(set, options.yes, "remove the files of the jobs without asking for confirmation");
  bind_queue(set, options.queue);
}

std::vector<int> named_jobs(const std::string& words, const job::JobQueue& queue) {
  std::vector<int> numbers;
  for (const std::string& word : split(words, ' ')) {
    if (word.empty()) continue;
    const auto number = parse_integer(word);
    if (!number || *number < 1 || *number > 999'999'999) {
      throw UsageError(fmt::format("'{}' is no number of a job", word),
                       fmt::format("`{}` shows the jobs", queue.command("jobs list")));
    }
    numbers.push_back(static_cast<int>(*number));
  }
  return numbers;
}

// What the runner does from now on.
ExitCode set_automatic(job::JobQueue& queue, int days, bool yes, Reporter& reporter) {
  if (days > 0) {
    require_consent(
        yes,
        fmt::format("from now on remove the logs and records of each job {} days after its end? Checkpoints "
                    "stay, unless they are in {}",
                    days, queue.folder().string()),
        reporter);
  }
  queue.set_forget_after(days);
  if (reporter.json()) {
    reporter.answer_json(
        Json::object({{"schema", "dtrain.jobs-forget/1"}, {"jobs", Json::array()}, {"automatic_days", days}}));
  } else {
    reporter.answer(days == 0 ? "jobs stay until they are forgotten by hand"
                              : fmt::format("each job is removed {} days after its end", days));
  }
  return ExitCode::ok;
}

std::string numbers_text(const std::vector<int>& numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, ", ");
}

struct Forgotten {
  std::vector<int> numbers;
  Json refused = Json::array();  // {"job", "error"}
};

// Throws only where no job could be removed.
Forgotten forget_all(job::JobQueue& queue, const std::vector<int>& numbers, Reporter& reporter) {
  Forgotten result;
  for (const int number : numbers) {
    try {
      queue.forget(number);
      result.numbers.push_back(number);
    } catch (const Error& error) {
      if (result.refused.as_array().size() + 1 == numbers.size()) throw;
      reporter.warn(error.what());
      result.refused.push_back(Json::object({{"job", number}, {"error", error.what()}}));
    }
  }
  return result;
}

ExitCode act(const JobsForgetCommand& options, const config::OptionSet& set, Reporter& reporter) {
  const int ways = (options.days ? 1 : 0) + (options.automatic ? 1 : 0) + (options.jobs.empty() ? 0 : 1);
  if (ways != 1) {
    throw UsageError("jobs forget: which jobs?", "give their numbers, or --older-than DAYS, or --automatic DAYS");
  }
  job::JobQueue queue = open_queue(options.queue, set);
  if (options.automatic) return set_automatic(queue, *options.automatic, options.yes, reporter);
  const std::vector<int> numbers = options.days ? job::jobs_over_for(queue.read(), *options.days, unix_now().count())
                                                : named_jobs(options.jobs, queue);
  if (!numbers.empty()) {
    require_consent(options.yes,
                    fmt::format("remove the logs and records of job {}? Checkpoints stay, unless they are in {}",
                                numbers_text(numbers), queue.folder().string()),
                    reporter);
  }
  const Forgotten result = forget_all(queue, numbers, reporter);
  const Json::Array forgotten(result.numbers.begin(), result.numbers.end());
  if (reporter.json()) {
    reporter.answer_json(
        Json::object({{"schema", "dtrain.jobs-forget/1"}, {"jobs", forgotten}, {"refused", result.refused}}));
  } else {
    reporter.answer(numbers.empty() ? "no job is that old"
                                    : fmt::format("forgot job {}", numbers_text(result.numbers)));
  }
  return result.refused.as_array().empty() ? ExitCode::ok : ExitCode::partly_done;
}

}  // namespace

std::unique_ptr<Command> make_jobs_forget() {
  auto command = make_command<JobsForgetCommand>(
      "jobs forget", "remove jobs of a queue that are over, with their logs and records", act);
  command->examples = {"dtrain jobs forget 7 8 --cluster demo --yes",
                       "dtrain jobs forget --older-than 30 --cluster demo --yes",
                       "dtrain jobs forget --automatic 90 --cluster demo --yes"};
  command->see_also = {"jobs list", "jobs cancel"};
  return command;
}

}  // namespace dtrain::cli
