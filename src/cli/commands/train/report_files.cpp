#include "report_files.hpp"

#include "cli/own_outputs.hpp"

namespace dtrain::cli {

void refuse_to_replace_in_report(const Path& folder) {
  constexpr std::string_view kOption = "--report";
  refuse_to_replace_table(kOption, folder / "per_class.csv", {kScoresHead, kObjectBoxHead});
  refuse_to_replace_table(kOption, folder / "confusion.csv", {kConfusionHead});
  refuse_to_replace_table(kOption, folder / "reliability.csv", {kReliabilityHead});
  refuse_to_replace_table(kOption, folder / "predictions.csv", {kPredictionsHead});
  for (const char* name : {"confusion.png", "reliability.png", "mistakes.png", "objects.png"})
    refuse_to_replace_picture(kOption, folder / name);
}

}  // namespace dtrain::cli
