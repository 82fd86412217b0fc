# Written by docs/stubs.py.
from pathlines.architecture.families import bert as bert
from pathlines.architecture.families import gemma as gemma
from pathlines.architecture.families import gpt2 as gpt2
from pathlines.architecture.families import gpt_neox as gpt_neox
from pathlines.architecture.families import llama as llama
from pathlines.architecture.families import vit as vit
