#include "job_records.hpp"

#include <fmt/format.h>

#include <utility>

#include <dtrain/elastic/job_files.hpp>

namespace dtrain::elastic {
namespace {

constexpr std::chrono::seconds kCatchUpInterval{1};
constexpr std::size_t kMostWaiting = 100'000;

}  // namespace

JobRecords::JobRecords(const Path& folder, std::function<bool()> may_write, std::function<void(const Say&)> say)
    : folder_(folder),
      may_write_(std::move(may_write)),
      say_(std::move(say)),
      member_log_(folder / job_file::kMemberLog),
      events_(folder / job_file::kEvents),
      journal_(folder / job_file::kJournal) {}

void JobRecords::record(std::function<void()> write) {
  write_waiting();
  if (waiting_.empty() && may_write_()) return write_now(write);
  if (waiting_.size() >= kMostWaiting) waiting_.pop_front();
  waiting_.push_back(std::move(write));
}

void JobRecords::write_waiting() {
  if (waiting_.empty() || !may_write_()) return;
  for (const auto& write : std::exchange(waiting_, {})) write_now(write);
}

void JobRecords::write_now(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    complain(error);
  }
}

void JobRecords::complain(const Error& error) {
  if (!complaints_.insert(error.what()).second) return;
  const std::string remedy = error.hint().empty() ? "" : error.hint() + "; ";
  say_({Say::Kind::warning, error.what(), remedy + "the job goes on, and writes what is missing as soon as it can"});
}

void JobRecords::catch_up(Time now) {
  if (now < catch_up_due_) return;
  catch_up_due_ = now + kCatchUpInterval;
  bool is_behind = false;
  for (GrowingFile* file : {&member_log_.file(), &events_.file(), &journal_.file()}) {
    if (file->is_behind()) record([file] { file->catch_up(); });
    is_behind |= file->is_behind();
  }
  if (!std::exchange(was_behind_, is_behind) || is_behind) return;
  complaints_.clear();
  say_({Say::Kind::note,
        fmt::format("{} can be written again: its events, journal and member log are complete", folder_.string()), ""});
}

}  // namespace dtrain::elastic
