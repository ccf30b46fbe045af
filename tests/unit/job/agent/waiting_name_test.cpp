#include "agent/waiting_name.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

#include "agent/life_sign.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::job {
namespace {

using launcher::WaitingHost;
using launcher::WaitingState;
using namespace std::chrono_literals;

class WaitingNameTest : public ::testing::Test {
 protected:
  // A process of another machine; its identity comes before or behind that of this process.
  static WaitingHost foreign(WaitingState state, bool comes_first = true) {
    return {"w1", state, 1, 1000, comes_first ? "!another boot" : "~another boot", "node7"};
  }
  std::string refusal() const {
    try {
      await_free_name(files_, "w1", 1s);
      return "";
    } catch (const Error& error) {
      return std::string(error.what()) + "; " + error.hint();
    }
  }
  void renew_meanwhile(WaitingHost host) {
    renewing_ = std::jthread([this, host](const std::stop_token& stop) mutable {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(50ms), ++host.time) files_.renew(host);
    });
  }
  bool gives_way() const {
    try {
      give_way(files_, "w1");
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  const TemporaryFolder folder_;
  const launcher::WaitingFolder files_{folder_.path()};
  std::jthread renewing_;
};

TEST_F(WaitingNameTest, IsFreeWhereNoneHasIt) { EXPECT_EQ(refusal(), ""); }

TEST_F(WaitingNameTest, IsRefusedWhileAnotherMachineRenewsIt) {
  files_.renew(foreign(WaitingState::in_job));
  renew_meanwhile(foreign(WaitingState::in_job));
  EXPECT_EQ(refusal(),
            "w1 waits in this folder already, as process 1 of the machine node7; give this host another name with "
            "--name");
}

TEST_F(WaitingNameTest, IsFreeAgainWhenItStandsStill) {
  files_.renew(foreign(WaitingState::in_job));
  EXPECT_EQ(refusal(), "") << "that machine is gone";
  files_.renew({"w1", WaitingState::in_job, 1, seconds_since_1970(), process_namespace() + " 0"});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal(), "") << "it has ended here";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}

TEST_F(WaitingNameTest, OfALivingProcessHereIsRefused) {
  const pid_t parent = ::getppid();
  for (const std::int64_t age : {0, 1000}) {  // one that stands still may go on at any time
    files_.renew({"w1", WaitingState::waiting, parent, seconds_since_1970() - age, process_identity(parent)});
    EXPECT_NE(refusal().find("as process " + std::to_string(parent) + ";"), std::string::npos) << age;
  }
}

TEST_F(WaitingNameTest, OneOfTwoGivesWay) {
  EXPECT_FALSE(gives_way());
  files_.renew(own_sign("w1", WaitingState::waiting));
  EXPECT_FALSE(gives_way());
  files_.renew(foreign(WaitingState::waiting, true));
  EXPECT_TRUE(gives_way());
  files_.renew(foreign(WaitingState::waiting, false));
  EXPECT_FALSE(gives_way()) << "the other one does";
  files_.renew(foreign(WaitingState::in_job, false));
  EXPECT_TRUE(gives_way()) << "it trains";
  files_.renew(foreign(WaitingState::left, true));
  EXPECT_FALSE(gives_way());
}

TEST_F(WaitingNameTest, TheFilesOfAnotherProcessStay) {
  files_.renew(foreign(WaitingState::in_job));
  forget_own(files_, "w1");
  EXPECT_TRUE(files_.find("w1"));
  files_.renew(own_sign("w1", WaitingState::left));
  forget_own(files_, "w1");
  EXPECT_FALSE(files_.find("w1"));
}

}  // namespace
}  // namespace dtrain::job
