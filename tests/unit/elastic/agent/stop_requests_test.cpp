#include "elastic/agent/stop_requests.hpp"

#include <gtest/gtest.h>

namespace dtrain::elastic {
namespace {

using enum SignalSource;
using enum StopRequest;
using namespace std::chrono_literals;

constexpr StopRequests::Time kNow{1000s};

// As Slurm does: the supervisor got the signal, too.
TEST(StopRequests, OneOfAllProcessesIsOneRequest) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other, kNow), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent, kNow), repeated);
  EXPECT_EQ(requests.hear(SIGTERM, other, kNow), further) << "the second one of all processes";
}

TEST(StopRequests, TwoOfTheParentAloneAreTwo) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, parent, kNow), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent, kNow), further);
}

TEST(StopRequests, TwoToTheAgentAloneAreTwo) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other, kNow), first);
  EXPECT_EQ(requests.hear(SIGTERM, other, kNow), further);
}

TEST(StopRequests, TheParentIsHeardOnceAfterADirectSignal) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other, kNow), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent, kNow), repeated);
  EXPECT_EQ(requests.hear(SIGTERM, parent, kNow), further);
}

TEST(StopRequests, TheParentsSignalOfLaterOrOfAnotherKindIsAFurtherRequest) {
  StopRequests later;
  EXPECT_EQ(later.hear(SIGTERM, other, kNow), first);
  EXPECT_EQ(later.hear(SIGTERM, parent, kNow + 1min), further) << "this one reached the parent alone";
  StopRequests announced;
  EXPECT_EQ(announced.hear(SIGUSR1, other, kNow), first);
  EXPECT_EQ(announced.hear(SIGTERM, parent, kNow), further);
}

TEST(StopRequests, TheParentsDeathIsANoticeButNoFurtherOne) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, parents_death, kNow), first);
  EXPECT_EQ(requests.hear(SIGTERM, parents_death, kNow), repeated);
}

// SIGXCPU comes each second, s_rt's SIGUSR1 every 90 seconds.
TEST(StopRequests, WarningsAreOneRequestHoweverOftenTheyCome) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU}) {
    StopRequests requests;
    EXPECT_EQ(requests.hear(signal, other, kNow), first);
    EXPECT_EQ(requests.hear(signal, parent, kNow), repeated);
    EXPECT_EQ(requests.hear(signal, other, kNow), repeated);
    EXPECT_EQ(requests.hear(SIGTERM, other, kNow), further) << "the end that was announced";
  }
}

}  // namespace
}  // namespace dtrain::elastic
