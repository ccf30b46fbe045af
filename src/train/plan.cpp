#include <dtrain/train/plan.hpp>
