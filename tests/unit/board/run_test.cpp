#include "run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "evaluation_answers.hpp"
#include "locks.hpp"

namespace dtrain::board {
namespace {

TEST(RunState, SaysWhatARunIsDoing) {
  EXPECT_STREQ(state_of({}), "waiting");
  EXPECT_STREQ(state_of({.began = true, .held = true}), "preparing");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .quiet_seconds = 3}), "training");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .held = true, .quiet_seconds = 3000}), "training");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .quiet_seconds = 3000}), "silent");
  EXPECT_STREQ(state_of({.began = true, .finished = true}), "finished");
  EXPECT_STREQ(state_of({.began = true, .finished = true, .exit_code = 75}), "stopped");
  EXPECT_STREQ(state_of({.began = true, .finished = true, .exit_code = 1}), "failed");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .finished = true, .held = true}), "training");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .held = true, .waits = true}), "waiting");
  EXPECT_STREQ(state_of({.began = true, .has_steps = true, .quiet_seconds = 3000, .waits = true}), "silent");
}

TEST(Run, OptionsAreReadWhereverTheyCameFrom) {
  const std::string toml =
      "[train]\nnetwork = \"mlp\"\n# image-shape = \"3,28,28\"  (recipe cifar10)\nnum-epochs = 5\n";
  EXPECT_EQ(configured(toml, "network"), "mlp");
  EXPECT_EQ(configured(toml, "image-shape"), "3,28,28");
  EXPECT_EQ(configured(toml, "num-epochs"), "5");
  EXPECT_EQ(configured(toml, "image"), "");
  EXPECT_EQ(configured("", "network"), "");
}

board::Run::News news(const std::string& steps, const std::string& events) {
  board::Run::News news;
  news.steps.lines = steps;
  news.events.lines = events;
  return news;
}
std::string event(int second, const std::string& rest) {
  return "{\"seq\":0,\"time\":\"2026-01-31T23:59:" + std::to_string(second) + ".000000Z\"," + rest + "}\n";
}

TEST(Run, TheLossIsThatOfTheLastLineAndTheSpeedThatOfSeveral) {
  board::Run run("/m/a-run", "a");
  const auto line = [](int second, const char* loss, int samples, double seconds) {
    return fmt::format(
        "{{\"time\":\"2026-01-31T23:59:{}.000000Z\",\"epoch\":0,\"step\":{},\"steps\":90,\"samples\":{},"
        "\"seconds\":{},\"loss\":{}}}\n",
        second, second, samples, seconds, loss);
  };
  run.apply(news(line(10, "103.5", 100, 9.5) + line(11, "2.3025850929940457", 50, 0.5), ""));
  const Json row = run.row(0, false);
  EXPECT_EQ(row.at("loss").as_number(), 2.3025850929940457) << "as the curve's end shows, with all digits of the file";
  EXPECT_DOUBLE_EQ(row.at("speed").as_number(), 15) << "150 samples in 10 s";
}

TEST(Run, SaysThatTheLossIsNotFinite) {
  board::Run run("/m/a-run", "a");
  const auto diverged = [&](const std::string& lines) {
    run.apply(news(lines, ""));
    return run.row(0, false).at("diverged").as_bool();
  };
  EXPECT_FALSE(diverged(""));
  EXPECT_FALSE(diverged("{\"time\":\"2026-01-31T23:59:10.000000Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":1}\n"));
  EXPECT_TRUE(
      diverged("{\"time\":\"2026-01-31T23:59:11.000000Z\",\"epoch\":0,\"step\":1,\"steps\":9,\"loss\":null}\n"));
}

TEST(Run, ARunThatEndedByALossThatIsNotFiniteHasDiverged) {
  const auto diverged = [](const std::string& reason) {
    board::Run run("/m/a-run", "a");
    run.apply(news("{\"time\":\"2026-01-31T23:59:10.000000Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":1}\n",
                   event(11, "\"event\":\"finish\",\"exit_code\":1,\"reason\":\"" + reason + "\"")));
    return run.row(0, false).at("diverged").as_bool();
  };
  EXPECT_TRUE(diverged("the loss is not finite at epoch 0 step 1"));
  EXPECT_FALSE(diverged("the disk is full"));
}

TEST(Run, TheRowFollowsTheRecords) {
  board::Run run("/m/a-run", "a");
  run.apply(news("", event(10, "\"event\":\"host_starting\",\"host\":\"w1\"") +
                         event(11, "\"event\":\"commit\",\"generation\":1,\"members\":[\"w1\",\"w2\"]") +
                         event(12, "\"event\":\"evaluation\",\"accuracy\":0.75,\"loss\":1") + "{\"torn\":" + "\n"));
  Json row = run.row(0, true);
  EXPECT_EQ(row.at("kind").as_string(), "job");
  EXPECT_EQ(row.at("workers").as_number(), 2);
  EXPECT_EQ(row.at("validation_accuracy").as_number(), 0.75);
  EXPECT_EQ(row.at("events").as_integer(), 3);
  run.apply(news("", event(21, "\"event\":\"finish\",\"exit_code\":75,\"reason\":\"stop\"") +
                         event(21, "\"event\":\"goodput\",\"percent\":90")));
  row = run.row(0, false);
  EXPECT_EQ(row.at("state").as_string(), "stopped");
  EXPECT_EQ(row.at("worker_seconds").as_number(), 20);
  run.apply(news("{\"time\":\"2026-01-31T23:59:50.000000Z\",\"begins\":true}\n", ""));
  EXPECT_EQ(run.row(0, true).at("state").as_string(), "preparing") << "it goes on";
}

TEST(Run, AJobThatHoldsItsTrainingWaitsAndHasNoSpeed) {
  board::Run run("/m/a-run", "a");
  run.apply(
      news("{\"time\":\"2026-01-31T23:59:12.000000Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"samples\":100,"
           "\"seconds\":1,\"loss\":1}\n",
           event(10, "\"event\":\"host_starting\",\"host\":\"w1\"") +
               event(11, "\"event\":\"commit\",\"generation\":1,\"members\":[\"w1\"]")));
  EXPECT_DOUBLE_EQ(run.row(0, true).at("speed").as_number(), 100);
  run.apply(news("", event(13, "\"event\":\"hold\",\"generation\":1,\"reason\":\"0 workers of at least 1\"")));
  Json row = run.row(0, true);
  EXPECT_EQ(row.at("state").as_string(), "waiting");
  EXPECT_TRUE(row.at("speed").is_null());
  EXPECT_EQ(row.at("workers").as_number(), 0);
  run.apply(news("", event(20, "\"event\":\"generation\",\"generation\":2,\"workers\":1")));
  row = run.row(0, true);
  EXPECT_EQ(row.at("state").as_string(), "training");
  EXPECT_DOUBLE_EQ(row.at("speed").as_number(), 100);
}

TEST(Run, AClockThatWasAheadDoesNotKeepARunAlive) {
  board::Run run("/m/a-run", "a");
  run.apply(news("", event(50, "\"event\":\"warning\",\"message\":\"ahead\"")));
  const double ahead = run.row(0, false).at("updated").as_number();
  run.apply(news("", event(10, "\"event\":\"warning\",\"message\":\"right\"")));
  EXPECT_EQ(run.row(0, false).at("updated").as_number(), ahead - 40);
  EXPECT_EQ(run.row(ahead + 55, false).at("state").as_string(), "silent");
}

TEST(Run, AClockThatIsBehindDoesNotSilenceARunWhoseLinesCome) {
  board::Run run("/m/a-run", "a");
  run.apply(news("", event(10, "\"event\":\"warning\",\"message\":\"x\"")));
  const double last = run.row(0, false).at("updated").as_number(), now = last + 3000;
  EXPECT_STREQ(run.state(now, false), "silent");
  EXPECT_EQ(run.end(now, false), last);
  run.apply(news("", event(11, "\"event\":\"warning\",\"message\":\"y\"")), now);
  EXPECT_STREQ(run.state(now + 60, false), "preparing");
  EXPECT_EQ(run.end(now + 60, false), now + 60);
  EXPECT_STREQ(run.state(now + 100, false), "silent");
}

TEST(Run, WorkersOfAJobThatWasKilledCountUntilItsLastEvent) {
  board::Run run("/m/job", "job");
  const std::string hosts = "\"event\":\"hosts\",\"list\":1,\"added\":[\"w1\"],\"removed\":[]";
  const std::string commit = "\"event\":\"commit\",\"generation\":1,\"members\":[\"w1\",\"w2\"]";
  run.apply(news("", event(10, hosts) + event(11, "\"event\":\"host_starting\",\"host\":\"w1\"") + event(12, commit) +
                         event(15, "\"event\":\"checkpoint\",\"file\":\"a\"") + event(50, hosts) + event(52, commit) +
                         event(55, "\"event\":\"finish\",\"exit_code\":0")));
  EXPECT_EQ(run.row(0, false).at("worker_seconds").as_number(), 2 * 3 + 2 * 3);
}

TEST(Run, AProgramThatRunsIsNotBeingPrepared) {
  board::Run run("/m/job", "job");
  const std::string hosts = "\"event\":\"hosts\",\"list\":1,\"added\":[\"w1\"],\"removed\":[]";
  run.apply(news("", event(10, hosts)));
  EXPECT_STREQ(run.state(0, true), "preparing");
  run.apply(news("", event(11, "\"event\":\"started\",\"ranks\":2,\"generation\":1")));
  EXPECT_STREQ(run.state(0, true), "training");
  run.apply(news("", event(20, hosts)));
  EXPECT_STREQ(run.state(0, true), "preparing") << "the job was started again";
}

TEST(Run, ValidationsOfARunThatWasReplacedDoNotCount) {
  const auto begins = [](int second) {
    return fmt::format("{{\"time\":\"2026-01-31T23:59:{}.000000Z\",\"begins\":true}}\n", second);
  };
  board::Run run("/m/a-run", "a");
  run.apply(news(begins(10), event(12, "\"event\":\"evaluation\",\"accuracy\":0.75,\"loss\":1")));
  EXPECT_EQ(run.row(0, true).at("best_accuracy").as_number(), 0.75);
  board::Run::News other = news(begins(20), "");
  other.steps.restarted = true;
  run.apply(std::move(other));
  EXPECT_TRUE(run.row(0, true).at("best_accuracy").is_null());
  EXPECT_TRUE(run.row(0, true).at("validation_loss").is_null());
  run.apply(news("", event(22, "\"event\":\"evaluation\",\"accuracy\":0.5,\"loss\":2")));
  EXPECT_EQ(run.row(0, true).at("best_accuracy").as_number(), 0.5);
  EXPECT_EQ(validations_of(run).at("validations").as_array().size(), 1u);
  EXPECT_EQ(run.events().size(), 2u);
}

TEST(Run, SettingsOfTheSameSizeAreReadAnew) {
  const TemporaryFolder folder;
  const auto files = open_files(folder.path().string(), nullptr);
  const auto write = [&](const char* epochs, const char* steps) {
    write_file_atomic(folder / "train.toml", fmt::format("num-epochs = {}\n", epochs));
    write_file_atomic(folder / "steps.jsonl", steps);
  };
  constexpr const char* kFirst = "{\"time\":\"2026-01-31T12:00:01Z\",\"begins\":true}\n";
  board::Run run(folder.path().string(), "a");
  write("4", kFirst);
  run.apply(run.fetch(*files));
  EXPECT_EQ(run.row(0, false).at("epochs_total").as_number(), 4);
  write("8", (std::string(kFirst) + kFirst).c_str());
  run.apply(run.fetch(*files));
  EXPECT_EQ(run.row(0, false).at("epochs_total").as_number(), 8);
}

TEST(Run, AnotherRunInTheSameFolderBeginsAnew) {
  board::Run run("/m/a-run", "a");
  run.apply(news("", event(12, "\"event\":\"evaluation\",\"accuracy\":0.75,\"loss\":1")));
  board::Run::News other = news("", event(13, "\"event\":\"warning\",\"message\":\"x\""));
  other.events.restarted = true;
  run.apply(std::move(other));
  EXPECT_TRUE(run.row(0, true).at("validation_accuracy").is_null());
  EXPECT_EQ(run.events().size(), 1u);
}

TEST(Locks, AreReadFromTheKernelsTable) {
  const auto files = parse_locks(
      "1: FLOCK  ADVISORY  WRITE 2044 fe:00:131090 0 EOF\n2: POSIX  ADVISORY  WRITE 1 fe:00:7 0 EOF\n2: -> FLOCK\n\n");
  EXPECT_EQ(files, std::set<std::string>{"fe:00:131090"});
}

// Files that are there and of which one cannot be read for a while.
class Troubled final : public Files {
 public:
  FoundRuns find_runs() override { return {}; }
  std::optional<std::uint64_t> size(const std::string& path) override {
    return path == "/r/steps.jsonl" ? kSteps.size() : path == "/r/events.jsonl" ? kEvents.size() : 0;
  }
  std::string version(const std::string&) override { return {}; }
  std::string read(const std::string& path, std::uint64_t from, std::uint64_t) override {
    if (path == "/r/steps.jsonl") return kSteps.substr(from);
    if (broken) throw DataError("the service does not answer");
    return kEvents.substr(from);
  }
  std::vector<ListedFile> list(const std::string&) override { return {}; }
  bool is_local() const override { return false; }

  bool broken = true;

 private:
  const std::string kSteps = "{\"time\":\"2026-01-31T12:00:01Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":2}\n",
                    kEvents = "{\"time\":\"2026-01-31T12:00:02Z\",\"event\":\"host_starting\"}\n";
};

TEST(Run, AFileThatCannotBeReadLosesNoLineOfTheOthers) {
  Troubled files;
  board::Run run("/r", "r");
  EXPECT_THROW(run.fetch(files), DataError);
  files.broken = false;
  const board::Run::News news = run.fetch(files);
  EXPECT_FALSE(news.steps.lines.empty());
  EXPECT_FALSE(news.events.lines.empty());
}

}  // namespace
}  // namespace dtrain::board
