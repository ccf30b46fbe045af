#include <fmt/format.h>

#include <fstream>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "cli/command.hpp"
#include "queue_choice.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kLookAtLog = 300ms;
constexpr std::size_t kPieceBytes = 1 << 20;

struct JobsLogsCommand {
  QueueChoice queue;
  int job = 0;
  bool follow = false;
};

void bind(config::OptionSet& set, JobsLogsCommand& options) {
  bind_job_number(set, options.job);
  bind_queue(set, options.queue);
  set.add("-f,--follow", options.follow, "print what is written later too, until the job is over").flag_only = true;
}

// Prints whole lines as they are written.
class LogPrinter {
 public:
  LogPrinter(const job::QueuedJob& job, Reporter& reporter)
      : file_(job.output()), job_(job.number), reporter_(reporter) {}

  // Prints what is new; false: there was nothing.
  bool print(bool to_the_end) {
    if (!is_listed(file_)) return false;
    std::ifstream stream(file_, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(position_));
    std::string text(kPieceBytes, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    std::size_t end = text.rfind('\n') + 1;
    if (end == 0 && (to_the_end || text.size() == kPieceBytes)) end = text.size();
    if (end == 0) return false;
    position_ += end;
    text.resize(end);
    if (text.back() == '\n') text.pop_back();
    reporter_.answer(reporter_.json() ? documents_of(text) : text);
    reporter_.flush();
    return true;
  }

 private:
  std::string documents_of(const std::string& lines) const {
    std::vector<std::string> documents;
    for (const std::string& line : split(lines, '\n'))
      documents.push_back(Json::object({{"schema", "dtrain.job-log/1"}, {"job", job_}, {"line", line}}).dump());
    return join(documents, "\n");
  }

  const Path file_;
  const int job_;
  Reporter& reporter_;
  std::uint64_t position_ = 0;
};

ExitCode act(const JobsLogsCommand& options, const config::OptionSet& set, Reporter& reporter) {
  watch_stop_signals();
  job::JobQueue queue = open_queue(options.queue, set);
  job::QueuedJob job = queue.at(options.job);
  LogPrinter printer(job, reporter);
  if (job.spec && job.record.attempts == 0) {
    reporter.note(
        fmt::format("job {} has not begun{}", job.number, job.record.why.empty() ? "" : ": it " + job.record.why));
  }
  while (options.follow && job.spec && !job.record.is_over()) {
    if (stop_signal() != 0) throw Interrupted(stop_signal(), fmt::format("job {} goes on", job.number));
    if (!printer.print(false)) std::this_thread::sleep_for(kLookAtLog);
    job = queue.at(options.job);
  }
  while (printer.print(true)) {
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_jobs_logs() {
  auto command =
      make_command<JobsLogsCommand>("jobs logs", "print what a job of a queue has written, in all attempts", act);
  command->examples = {"dtrain jobs logs 7 --cluster demo", "dtrain jobs logs 7 -f --cluster demo"};
  command->see_also = {"jobs show", "tail-logs"};
  return command;
}

}  // namespace dtrain::cli
