#include <gtest/gtest.h>

#include "coordinator/scheduler_words.hpp"

namespace dtrain::job {
namespace {

using Words = std::vector<std::string>;

TEST(SchedulerWords, ErrorsAndNewsAreToldWithoutThePrefixesOfSlurm) {
  const SchedulerWords words = scheduler_words(
      "salloc: Pending job allocation 7\nsalloc: job 7 queued and waiting for resources\n"
      "salloc: Granted job allocation 7\nsalloc: error: invalid partition specified: nope\nsalloc: err");
  EXPECT_EQ(words.notes, (Words{"Slurm: Pending job allocation 7", "Slurm: job 7 queued and waiting for resources"}));
  EXPECT_EQ(words.errors, Words{"invalid partition specified: nope"});
}

TEST(SchedulerWords, OneMessageSaysWhyThereIsNoJobAndWhatToDo) {
  const Words errors = {"invalid partition specified: nope", "Job submit/allocate failed: Invalid partition name"};
  EXPECT_EQ(scheduler_failure(errors),
            "Slurm does not run the job: invalid partition specified: nope; Job submit/allocate failed: Invalid "
            "partition name");
  EXPECT_NE(scheduler_hint(errors).find("--queue"), std::string::npos);
  EXPECT_NE(scheduler_hint({"More processors requested than permitted"}).find("squeue"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::job
