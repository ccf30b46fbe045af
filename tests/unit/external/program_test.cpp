#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/external/program.hpp>
#include <dtrain/external/run_program.hpp>

#include "common/temporary_folder.hpp"
#include "find_program.hpp"

namespace dtrain::external {
namespace {

TEST(ForeignProgram, EveryByteOfAWordTravels) {
  Program program;
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  program.command = {"train", all, "", "a\nb", "\xc3\xa9"};
  program.environment = {"A=" + all};
  program.job = std::string("j");
  const Program got = program_from_json(Json::parse(to_json(program).dump(), "test"));
  EXPECT_EQ(got.command, program.command);
  EXPECT_EQ(got.environment, program.environment);
}

TEST(ForeignProgram, AllOfItTravels) {
  const Program program{.command = {"train"},
                        .fills_placeholders = true,
                        .servers = 2,
                        .horovod = true,
                        .jax = true,
                        .gpus_per_rank = 3,
                        .worker_environment = {"W=1"},
                        .server_environment = {"S=1"},
                        .stop_signal = 10,
                        .interrupt_signal = 11,
                        .save_signal = 12,
                        .save_timeout = std::chrono::milliseconds(700),
                        .grace = std::chrono::milliseconds(1500),
                        .max_restarts = 4,
                        .fruitless_limit = 3,
                        .job = "name"};
  EXPECT_EQ(to_json(program_from_json(to_json(program))), to_json(program));
}

TEST(ForeignProgram, IsReadForTheNamesOfFrameworks) {
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "train.py").string();
  write_file_atomic(script, "import horovod.torch as hvd\n");
  EXPECT_TRUE(mentions({"python3", script}, {"import", "horovod"}));
  EXPECT_FALSE(mentions({"python3", script}, {"jax"}));
  EXPECT_FALSE(mentions({"python3", "/no/such/file", folder.path().string()}, {"horovod"}));
}

TEST(ForeignProgram, AProgramWithoutACommandIsRefused) {
  EXPECT_THROW(program_from_json(to_json(Program{})), DataError);
}

TEST(ForeignProgram, PathOfTheProgramsOwnEnvironmentIsSearched) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "tool", "#!/bin/sh\n");
  EXPECT_THROW(find_program("tool", {"PATH=" + folder.path().string()}), Error) << "it is not executable";
  std::filesystem::permissions(folder.path() / "tool", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_program("tool", {"PATH=/nowhere:" + folder.path().string()}), folder.path() / "tool");
  EXPECT_EQ(find_program((folder.path() / "tool").string(), {}), folder.path() / "tool");
  EXPECT_THROW(find_program("tool", {"PATH=/nowhere"}), Error);
}

TEST(ForeignProgram, AScriptWithTheLineEndsOfWindowsIsNamedAsOne) {
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "run.sh").string();
  const auto write = [&](const std::string& text) {
    write_file_atomic(script, text);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  };
  for (const char* first : {"#!/bin/sh\r\n", "#!/usr/bin/env python3\r\n"}) {
    write(first);
    try {
      find_program(script, {});
      FAIL() << "it was found: " << first;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("CR LF"), std::string::npos) << error.what();
      EXPECT_EQ(error.hint(), "sed -i 's/\\r$//' " + script);
    }
  }
  for (const char* first : {"#!/bin/sh -e \r\n", "#!/usr/bin/env -S sh -e\r\n"}) {
    write(first);
    EXPECT_EQ(find_program(script, {}), script) << first;
  }
}

TEST(ForeignProgram, IsLookedForOnANewHostAsItWillBeStarted) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() / "tool", "#!/bin/sh\n");
  std::filesystem::permissions(folder.path() / "tool", std::filesystem::perms::owner_all);
  Program program{.command = {"tool"}};
  EXPECT_THROW(check_program(program, {"PATH=/nowhere"}), Error);
  EXPECT_NO_THROW(check_program(program, {"PATH=" + folder.path().string()}));
  program.worker_environment = {"PATH=" + folder.path().string()};
  EXPECT_NO_THROW(check_program(program, {"PATH=/nowhere"}));
}

TEST(ForeignProgram, AProgramNamedByAPlaceholderIsNotLookedForBeforeARankFillsIt) {
  Program program{.command = {"./{role}.sh"}};
  EXPECT_THROW(check_program(program, {"PATH=/nowhere"}), Error);
  program.fills_placeholders = true;
  EXPECT_NO_THROW(check_program(program, {"PATH=/nowhere"}));
  program.command = {"tool", "{role}"};
  EXPECT_THROW(check_program(program, {"PATH=/nowhere"}), Error);
}

TEST(ForeignProgram, ACommandLineInOneWordIsAnsweredWithTheWayToGiveIt) {
  for (const char* line : {"python train.py --lr 1", "./train.py --lr 1"}) {
    try {
      find_program(line, {"PATH=/nowhere"});
      FAIL() << "it was found";
    } catch (const Error& error) {
      EXPECT_NE(error.hint().find("separate words"), std::string::npos) << error.hint();
    }
  }
}

}  // namespace
}  // namespace dtrain::external
