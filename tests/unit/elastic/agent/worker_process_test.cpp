#include "elastic/agent/worker_process.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

// last_lines() reads to the end of both streams before the loop does.
TEST(WorkerProcess, IsOverOnceItsOutputHasEndedWhoeverReadTheEnd) {
  const TemporaryFolder folder;
  net::Loop loop;
  const auto worker = std::make_shared<WorkerProcess>(loop, WorkerJob(), folder / "log", 1h);
  std::vector<std::string> last_lines;
  worker->start({"/bin/sh", "-c", "echo why; exit 3"}, {"PATH=/usr/bin:/bin"}, folder.path(),
                "DTRAIN_TEST_MARK=worker " + std::to_string(::getpid()),
                {.on_message = [](const std::string&) {},
                 .on_output = [](OutputStream, const std::string&) {},
                 .on_exit =
                     [&](const Exited& exited) {
                       EXPECT_EQ(exited.exit_code, 3);
                       last_lines = exited.last_lines;
                       loop.stop();
                     }});
  while (!has_ended(worker->id())) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(worker->last_lines(), std::vector<std::string>{"why"});
  loop.after(60s, [&] {
    ADD_FAILURE() << "it waits for output that cannot come";
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(last_lines, std::vector<std::string>{"why"});
}

}  // namespace
}  // namespace dtrain::elastic
