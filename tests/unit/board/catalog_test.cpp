#include "catalog.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/temporary_folder.hpp"

namespace dtrain::board {
namespace {

// Adds a line of long ago.
void write_steps(const Path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "steps.jsonl", std::ios::app)
      << "{\"time\":\"2020-01-31T12:00:01Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":2}\n";
}

// The names of the runs after one round.
std::vector<std::string> names_after_look(Catalog& catalog, Catalog::Time now = std::chrono::steady_clock::now()) {
  catalog.look(now, [] { return false; });
  std::vector<std::string> names;
  const Json rows = catalog.rows();
  for (const Json& row : rows.as_array()) names.push_back(row.at("name").as_string());
  return names;
}

TEST(Catalog, SaysWhichRootARunIsOf) {
  const TemporaryFolder folder;
  write_steps(folder / "m/deep/a-run");
  Catalog catalog({(folder / "m/").string()}, nullptr);
  EXPECT_EQ(names_after_look(catalog).size(), 1u);
  EXPECT_EQ(catalog.root_of(catalog.ids().at(0)), (folder / "m").string());
  EXPECT_EQ(catalog.root_of("none"), "");
}

TEST(Catalog, TheWorkingFolderMayVanish) {
  const TemporaryFolder folder;
  const Path before = std::filesystem::current_path();
  std::filesystem::create_directory(folder / "work");
  std::filesystem::current_path(folder / "work");
  Catalog catalog({"../m"}, nullptr);
  std::filesystem::remove(folder / "work");
  write_steps(folder / "m/a-run");
  EXPECT_NO_THROW(EXPECT_EQ(names_after_look(catalog), std::vector<std::string>{"a"}));
  std::filesystem::current_path(before);
}

TEST(Catalog, RunsAreFoundAtAnyUsualPlace) {
  const TemporaryFolder folder;
  write_steps(folder / "a/b/c/d/e/f/g/h/deep-run");
  write_steps(folder / "logs/in-logs-run");
  write_steps(folder / "job");
  write_steps(folder / "job/logs/no-run");  // what a job itself fills
  Catalog catalog({folder.path().string()}, nullptr);
  std::vector<std::string> names = names_after_look(catalog);
  std::ranges::sort(names);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0], "a/b/c/d/e/f/g/h/deep");
  EXPECT_EQ(names[1].substr(names[1].rfind('/') + 1), "job");
  EXPECT_EQ(names[2], "logs/in-logs");
}

TEST(Catalog, RunsOfOneNameAreToldApartByTheirRoots) {
  const TemporaryFolder folder;
  for (const char* run : {"m/a-run", "n/a-run", "n/b-run"}) write_steps(folder / run);
  const std::string m = (folder / "m").string(), n = (folder / "n").string();
  Catalog catalog({m, n + "/"}, nullptr);
  std::vector<std::string> names = names_after_look(catalog);
  std::ranges::sort(names);
  std::vector<std::string> expected = {m + "/a", n + "/a", "b"};
  std::ranges::sort(expected);
  EXPECT_EQ(names, expected);
  std::filesystem::remove_all(folder / "m");
  names = names_after_look(catalog, std::chrono::steady_clock::now() + std::chrono::hours(1));
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"})) << "nothing else has the name now";
}

TEST(Files, ManyFoldersHideNoRunAboveThemAndAreComplainedOf) {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) std::filesystem::create_directories(folder / ("a/" + std::to_string(i)));
  write_steps(folder / "z-run");
  const FoundRuns all = open_files(folder.path().string(), nullptr)->find_runs();
  EXPECT_EQ(all.complaint, "");
  const FoundRuns some = open_files(folder.path().string(), nullptr, 10)->find_runs();
  EXPECT_EQ(some.folders, std::vector<std::string>{(folder / "z-run").string()});
  EXPECT_NE(some.complaint.find("ended after 10 folders"), std::string::npos) << some.complaint;
}

TEST(Catalog, ARunThatCannotBeReadIsNotGone) {
  const TemporaryFolder folder;
  write_steps(folder / "m/a-run");
  Catalog catalog({(folder / "m").string()}, nullptr);
  const Catalog::Time later = std::chrono::steady_clock::now() + std::chrono::hours(1);
  EXPECT_EQ(names_after_look(catalog).size(), 1u);
  std::filesystem::rename(folder / "m", folder / "away");
  std::filesystem::create_symlink("m", folder / "m");  // leads to itself, and no folder can be reached through it
  EXPECT_EQ(names_after_look(catalog, later).size(), 1u);
  EXPECT_FALSE(catalog.take_complaints().empty());
  std::filesystem::remove(folder / "m");
  EXPECT_TRUE(names_after_look(catalog, later + std::chrono::hours(1)).empty()) << "now it is gone";
}

TEST(Catalog, ARunWhoseClockIsBehindLivesWhileItsLinesCome) {
  const TemporaryFolder folder;
  write_steps(folder / "a-run");
  Catalog catalog({folder.path().string()}, nullptr);
  const auto state = [&] {
    catalog.look({}, [] { return false; });
    return catalog.rows().as_array().at(0).at("state").as_string();
  };
  EXPECT_EQ(state(), "silent") << "what was there before the board says nothing of now";
  write_steps(folder / "a-run");
  EXPECT_EQ(state(), "training");
}

TEST(Catalog, ARunIsShownOnceItsLinesAreRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "a-run");
  std::ofstream(folder.path() / "a-run" / "steps.jsonl")
      << "{\"time\":\"2026-01-31T12:00:01Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":2}\n";
  Catalog catalog({folder.path().string()}, nullptr);
  bool found = false;  // stopped between finding and reading
  catalog.look({}, [&] { return std::exchange(found, true); });
  EXPECT_TRUE(catalog.rows().as_array().empty());
  EXPECT_TRUE(catalog.ids().empty());
  catalog.look({}, [] { return false; });
  const Json rows = catalog.rows();
  ASSERT_EQ(rows.as_array().size(), 1u);
  EXPECT_EQ(rows.as_array()[0].at("lines").as_integer(), 1);
  EXPECT_EQ(catalog.ids().size(), 1u);
}

}  // namespace
}  // namespace dtrain::board
