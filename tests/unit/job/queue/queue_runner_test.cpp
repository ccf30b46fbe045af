#include "queue/queue_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"

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

}  // namespace
}  // namespace dtrain::job
