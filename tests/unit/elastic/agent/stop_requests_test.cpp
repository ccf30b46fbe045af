#include "elastic/agent/stop_requests.hpp"

#include <gtest/gtest.h>

namespace dtrain::elastic {
namespace {

using enum SignalSource;
using enum StopRequest;

// As Slurm does: the supervisor got the signal, too.
TEST(StopRequests, OneOfAllProcessesIsOneRequest) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent), repeated);
  EXPECT_EQ(requests.hear(SIGTERM, other), further) << "the second one of all processes";
}

TEST(StopRequests, TwoOfTheParentAloneAreTwo) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, parent), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent), further);
}

TEST(StopRequests, TwoToTheAgentAloneAreTwo) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other), first);
  EXPECT_EQ(requests.hear(SIGTERM, other), further);
}

TEST(StopRequests, TheParentIsHeardOnceAfterADirectSignal) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, other), first);
  EXPECT_EQ(requests.hear(SIGTERM, parent), repeated);
  EXPECT_EQ(requests.hear(SIGTERM, parent), further);
}

TEST(StopRequests, TheParentsDeathIsANoticeButNoFurtherOne) {
  StopRequests requests;
  EXPECT_EQ(requests.hear(SIGTERM, parents_death), first);
  EXPECT_EQ(requests.hear(SIGTERM, parents_death), repeated);
}

// SIGXCPU comes each second, s_rt's SIGUSR1 every 90 seconds.
TEST(StopRequests, WarningsAreOneRequestHoweverOftenTheyCome) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU}) {
    StopRequests requests;
    EXPECT_EQ(requests.hear(signal, other), first);
    EXPECT_EQ(requests.hear(signal, parent), repeated);
    EXPECT_EQ(requests.hear(signal, other), repeated);
    EXPECT_EQ(requests.hear(SIGTERM, other), further) << "the end that was announced";
  }
}

}  // namespace
}  // namespace dtrain::elastic
