#include "queue/queue_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "queue/job_queue.hpp"

namespace dtrain::job {
namespace {

TEST(QueueRunner, SaysOnceWhatCannotBeKnownAndGoesOn) {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  int asked = 0;
  run_queue({.queue = folder / "queue",
             .on_note = [&](const std::string& line) { notes.push_back(line); },
             .is_over =
                 [&] {
                   if (++asked < 3) throw Error("the file server does not answer");
                   return true;
                 }});
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(std::ranges::count(notes, "the file server does not answer"), 1);
}

TEST(QueueRunner, HearsOfACancelAndStartsNothingWhileItDoesNotKnowWhetherJobsMayRun) {
  const TemporaryFolder folder;
  JobQueue queue(folder / "queue");
  queue.submit({.words = {"train"}}, false);
  queue.submit({.words = {"train"}}, false);
  queue.cancel(1, false);
  std::vector<std::string> notes;
  int asked = 0;
  run_queue({.queue = folder / "queue",
             .on_note = [&](const std::string& line) { notes.push_back(line); },
             .hold = []() -> std::string { throw Error("cluster.json is damaged"); },
             .is_over = [&] { return ++asked == 3; }});
  EXPECT_EQ(queue.at(1).record.state, JobState::cancelled);
  EXPECT_EQ(queue.at(2).record.state, JobState::waiting);
  EXPECT_EQ(queue.at(2).record.why, "waits: cluster.json is damaged");
  EXPECT_EQ(std::ranges::count(notes, "cluster.json is damaged"), 1);
}

}  // namespace
}  // namespace dtrain::job
