// The files of `eval --report`, and how its tables begin.
#pragma once

#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::cli {

inline constexpr std::string_view kScoresHead = "label,class,support,predicted,correct,precision,recall,f1";
inline constexpr std::string_view kConfusionHead = "class";  // and the names of the classes
inline constexpr std::string_view kReliabilityHead = "low,high,samples,confidence,accuracy";
// And "file" where a .lst file beside the records names their pictures.
inline constexpr std::string_view kPredictionsHead = "sample,label,class,predicted_label,predicted,probability";
inline constexpr std::string_view kObjectBoxHead = "class,box_ap,box_ap50,box_ap75,box_ar100";

// Throws UsageError where the folder holds a file of a report's name that dtrain did not write.
void refuse_to_replace_in_report(const Path& folder);

}  // namespace dtrain::cli
