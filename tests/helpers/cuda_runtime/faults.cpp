#include "faults.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

#include "memory.hpp"

namespace dtrain::testing::cuda_runtime {
namespace {

thread_local const std::string* doing = nullptr;
const Memory* watched = nullptr;

// Not what a handler should do in a program that goes on; this one ends.
void name_fault(int number, siginfo_t* facts, void*) {
  const std::string who = doing ? "work '" + *doing + "'" : "the host";
  fmt::print(stderr, "stand-in of CUDA: {} touched {}\n", who,
             watched ? watched->describe(facts->si_addr) : "memory that is nobody's");
  std::fflush(stderr);
  ::signal(number, SIG_DFL);
}

}  // namespace

Doing::Doing(const std::string& name) { doing = &name; }
Doing::~Doing() { doing = nullptr; }

void name_faults(const Memory* memory) {
  watched = memory;
  struct sigaction action {};
  action.sa_sigaction = name_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace dtrain::testing::cuda_runtime
